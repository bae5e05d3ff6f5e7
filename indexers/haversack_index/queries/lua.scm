(comment) @comment
(function_declaration name: (identifier) @name body: (_)? @body) @def.function
(function_declaration name: (dot_index_expression table: (_) @container field: (_) @name) body: (_)? @body) @def.function
(function_declaration name: (method_index_expression table: (_) @container method: (_) @name) body: (_)? @body) @def.method
(assignment_statement (variable_list name: (dot_index_expression table: (_) @container field: (_) @name))
  (expression_list value: (function_definition body: (_)? @body))) @def.function
(assignment_statement (variable_list . name: (identifier) @name .)
  (expression_list . value: (function_definition body: (_)? @body))) @def.function
(field name: (identifier) @name value: (function_definition body: (_)? @body)) @def.function
(chunk (assignment_statement (variable_list name: (identifier) @name)) @def.variable)
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name)) @def.variable))

(function_call name: (identifier) @_require arguments: (arguments (string content: (string_content) @import))
  (#any-of? @_require "require" "dofile" "loadfile"))
(function_call name: [
  (identifier) @ref
  (dot_index_expression field: (identifier) @ref)
  (method_index_expression method: (identifier) @ref)
])
