(comment) @comment
(function_declaration name: (identifier) @name body: (_)? @body) @def.function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @container))
  name: (field_identifier) @name body: (_)? @body) @def.method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @def.struct
(type_spec name: (type_identifier) @name type: (interface_type) @body) @def.interface
(type_spec name: (type_identifier) @name) @def.type
(type_alias name: (type_identifier) @name) @def.type
(field_declaration name: (field_identifier) @name) @def.field
(method_elem name: (field_identifier) @name) @def.method
(source_file (const_declaration (const_spec name: (identifier) @name) @def.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @def.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @def.variable)))

(call_expression function: [(identifier) @ref (selector_expression field: (field_identifier) @ref)])
(type_identifier) @ref
(import_spec path: (interpreted_string_literal) @import)
