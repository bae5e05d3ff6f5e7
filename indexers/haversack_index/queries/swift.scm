[(comment) (multiline_comment)] @comment
(class_declaration declaration_kind: "struct" name: (_) @name body: (_) @body) @def.struct
(class_declaration declaration_kind: "enum" name: (_) @name body: (_) @body) @def.enum
(class_declaration declaration_kind: "extension" name: (_) @name body: (_) @body) @scope
(class_declaration name: (_) @name body: (_) @body) @def.class
(protocol_declaration name: (_) @name body: (_) @body) @def.interface
(function_declaration name: (simple_identifier) @name body: (_)? @body) @def.function
(protocol_function_declaration name: (simple_identifier) @name) @def.method
(init_declaration "init" @name body: (_)? @body) @def.constructor
(deinit_declaration "deinit" @name body: (_)? @body) @def.method
(subscript_declaration "subscript" @name) @def.method
(enum_entry name: (_) @name) @def.constant
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @def.variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @def.property)
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @def.property
(typealias_declaration name: (type_identifier) @name) @def.type

(call_expression . [
  (simple_identifier) @ref
  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @ref))
])
(user_type (type_identifier) @ref)
(import_declaration (identifier) @import)
