(comment) @comment
(class_declaration name: (name) @name body: (_) @body) @def.class
(interface_declaration name: (name) @name body: (_) @body) @def.interface
(trait_declaration name: (name) @name body: (_) @body) @def.trait
(enum_declaration name: (name) @name body: (_) @body) @def.enum
(enum_case name: (name) @name) @def.constant
(namespace_definition name: (namespace_name) @name body: (_) @body) @def.namespace
(function_definition name: (name) @name body: (_) @body) @def.function
(method_declaration name: (name) @name body: (_)? @body) @def.method
(property_declaration (property_element name: (variable_name (name) @name))) @def.field
(property_promotion_parameter name: (variable_name (name) @name)) @def.property
(const_declaration (const_element . (name) @name)) @def.constant

(function_call_expression function: [(name) @ref (qualified_name (name) @ref)])
(member_call_expression name: (name) @ref)
(nullsafe_member_call_expression name: (name) @ref)
(scoped_call_expression scope: (name) @ref)
(scoped_call_expression name: (name) @ref)
(object_creation_expression [(name) @ref (qualified_name (name) @ref)])
(base_clause [(name) @ref (qualified_name (name) @ref)])
(class_interface_clause [(name) @ref (qualified_name (name) @ref)])
(named_type [(name) @ref (qualified_name (name) @ref)])
(attribute (name) @ref)
(use_declaration (name) @ref)
(namespace_use_clause [(name) (qualified_name)] @import)
(require_expression (encapsed_string . (string_content) @import))
(require_once_expression (encapsed_string . (string_content) @import))
(include_expression (encapsed_string . (string_content) @import))
(require_expression (string . (string_content) @import))
(require_once_expression (string . (string_content) @import))
