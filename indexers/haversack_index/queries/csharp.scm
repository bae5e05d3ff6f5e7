(comment) @comment
(class_declaration name: (identifier) @name body: (_)? @body) @def.class
(record_declaration name: (identifier) @name body: (_)? @body) @def.class
(struct_declaration name: (identifier) @name body: (_)? @body) @def.struct
(interface_declaration name: (identifier) @name body: (_)? @body) @def.interface
(enum_declaration name: (identifier) @name body: (_)? @body) @def.enum
(enum_member_declaration name: (identifier) @name) @def.constant
(namespace_declaration name: (_) @name body: (_) @body) @def.namespace
(constructor_declaration name: (identifier) @name body: (_)? @body) @def.constructor
(destructor_declaration name: (identifier) @name body: (_)? @body) @def.method
(method_declaration name: (identifier) @name body: (_)? @body) @def.method
(local_function_statement name: (identifier) @name body: (_)? @body) @def.function
(property_declaration name: (identifier) @name accessors: (_)? @body) @def.property
(event_declaration name: (identifier) @name) @def.property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @def.field
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @def.field
(delegate_declaration name: (identifier) @name) @def.type

(invocation_expression function: [
  (identifier) @ref
  (generic_name (identifier) @ref)
  (member_access_expression name: [(identifier) @ref (generic_name (identifier) @ref)])
  (conditional_access_expression (member_binding_expression name: (identifier) @ref))
])
(object_creation_expression type: [(identifier) @ref (generic_name (identifier) @ref)])
(base_list [(identifier) @ref (generic_name (identifier) @ref)])
(parameter type: [(identifier) @ref (generic_name (identifier) @ref)])
(method_declaration returns: [(identifier) @ref (generic_name (identifier) @ref)])
(property_declaration type: [(identifier) @ref (generic_name (identifier) @ref)])
(variable_declaration type: [(identifier) @ref (generic_name (identifier) @ref)])
(type_argument_list (identifier) @ref)
(attribute name: (identifier) @ref)
(using_directive [(identifier) (qualified_name)] @import)
