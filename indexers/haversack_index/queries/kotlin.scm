[(line_comment) (multiline_comment)] @comment
(class_declaration "interface" (type_identifier) @name (class_body)? @body) @def.interface
(class_declaration "enum" (type_identifier) @name (enum_class_body)? @body) @def.enum
(class_declaration (type_identifier) @name (class_body)? @body) @def.class
(object_declaration (type_identifier) @name (class_body)? @body) @def.class
(companion_object (class_body) @body) @scope
(enum_entry (simple_identifier) @name) @def.constant
(function_declaration receiver: (receiver_type (user_type (type_identifier) @container)) (simple_identifier) @name
  (function_body)? @body) @def.function
(function_declaration . (modifiers)? . (type_parameters)? . (simple_identifier) @name (function_body)? @body) @def.function
(function_declaration (simple_identifier) @name (function_body)? @body) @def.function
(secondary_constructor "constructor" @name) @def.constructor
(source_file (property_declaration (variable_declaration (simple_identifier) @name)) @def.variable)
(class_body (property_declaration (variable_declaration (simple_identifier) @name)) @def.property)
(class_parameter (binding_pattern_kind) (simple_identifier) @name) @def.property
(type_alias (type_identifier) @name) @def.type

(call_expression . [(simple_identifier) @ref (navigation_expression (navigation_suffix (simple_identifier) @ref))])
(user_type (type_identifier) @ref)
(import_header (identifier) @import)
(import_header (identifier (simple_identifier) @ref .))
