(comment) @comment
(function_definition name: (word) @name body: (_) @body) @def.function
(program (variable_assignment name: (variable_name) @name) @def.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @def.variable)

(command name: (command_name (word) @_source) . argument: [(word) (string (string_content)) (raw_string) (concatenation)] @import
  (#any-of? @_source "source" "."))
(command name: (command_name (word) @ref))
