(comment) @comment
(decorator) @lead
(function_declaration name: (identifier) @name body: (_) @body) @def.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @def.function
(class_declaration name: (_) @name body: (_) @body) @def.class
(abstract_class_declaration name: (_) @name body: (_) @body) @def.class
(interface_declaration name: (_) @name body: (_) @body) @def.interface
(enum_declaration name: (_) @name body: (_) @body) @def.enum
(type_alias_declaration name: (_) @name) @def.type
(internal_module name: (_) @name body: (_) @body) @def.namespace
(module name: (_) @name body: (_) @body) @def.namespace
(function_signature name: (_) @name) @def.function
(method_signature name: (_) @name) @def.method
(abstract_method_signature name: (_) @name) @def.method
(property_signature name: (_) @name) @def.field
(method_definition name: (_) @name body: (_) @body) @def.method
(public_field_definition name: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(public_field_definition name: (_) @name) @def.field
(variable_declarator name: (identifier) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
  (generator_function body: (_) @body)
]) @def.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @def.class
(program [(lexical_declaration (variable_declarator name: (identifier) @name) @def.variable)
          (variable_declaration (variable_declarator name: (identifier) @name) @def.variable)])
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @def.variable)))
(assignment_expression
  left: (member_expression object: (_) @container property: (_) @name)
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @def.function
(assignment_expression
  left: (member_expression object: (_) @container property: (_) @name)
  right: (class body: (_) @body)) @def.class
(assignment_expression left: (identifier) @name right: [
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
]) @def.function
(pair key: (property_identifier) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
  (generator_function body: (_) @body)
]) @def.method
(export_statement "default" value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.default
(call_expression function: (identifier) @_suite
  arguments: (arguments . (string . (string_fragment) @name) [(arrow_function body: (_) @body) (function_expression body: (_) @body)])
  (#any-of? @_suite "describe" "it" "test" "suite" "context")) @def.heading

(call_expression function: [(identifier) @ref (member_expression property: (_) @ref)])
(new_expression constructor: [(identifier) @ref (member_expression property: (_) @ref)])
(class_heritage (extends_clause value: [(identifier) @ref (member_expression property: (_) @ref)]))
(type_identifier) @ref
(import_specifier name: (identifier) @ref)
(import_clause (identifier) @ref)
(export_specifier name: (identifier) @ref)
(decorator [(identifier) @ref (member_expression property: (_) @ref)])

(import_statement source: (string . (string_fragment) @import))
(export_statement source: (string . (string_fragment) @import))
(call_expression function: (import) arguments: (arguments . (string . (string_fragment) @import)))
(call_expression function: (identifier) @_require arguments: (arguments . (string . (string_fragment) @import))
  (#eq? @_require "require"))
(import_statement (import_require_clause (identifier) (string . (string_fragment) @import)))
