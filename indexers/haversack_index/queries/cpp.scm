(comment) @comment
(function_definition declarator: (_) @name body: (_) @body) @def.function
(struct_specifier name: (type_identifier) @name body: (_) @body) @def.struct
(union_specifier name: (type_identifier) @name body: (_) @body) @def.struct
(enum_specifier name: (type_identifier) @name body: (_) @body) @def.enum
(enumerator name: (identifier) @name) @def.constant
(type_definition type: (struct_specifier !name body: (_) @body) declarator: (_) @name) @def.struct
(type_definition type: (union_specifier !name body: (_) @body) declarator: (_) @name) @def.struct
(type_definition type: (enum_specifier !name body: (_) @body) declarator: (_) @name) @def.enum
(type_definition declarator: (_) @name) @def.type
(field_declaration declarator: (_) @name) @def.field
(preproc_def name: (identifier) @name) @def.macro
(preproc_function_def name: (identifier) @name) @def.macro
(declaration declarator: (_) @name) @def.declaration

(type_identifier) @ref
(preproc_include path: (_) @import)
(class_specifier name: [(type_identifier) @name (template_type name: (_) @name) (qualified_identifier) @name] body: (_) @body) @def.class
(struct_specifier name: (template_type name: (_) @name) body: (_) @body) @def.struct
(function_definition declarator: (_) @name (default_method_clause)) @def.function
(function_definition declarator: (_) @name (delete_method_clause)) @def.function
(function_definition declarator: (_) @name (try_statement body: (_) @body)) @def.function
(namespace_definition name: (_) @name body: (_) @body) @def.namespace
(alias_declaration name: (_) @name) @def.type
(concept_definition name: (_) @name) @def.type

(call_expression function: [
  (identifier) @ref
  (field_expression field: (field_identifier) @ref)
  (field_expression field: (template_method name: (_) @ref))
  (qualified_identifier name: (identifier) @ref)
  (qualified_identifier name: (qualified_identifier name: (identifier) @ref))
  (qualified_identifier name: (template_function name: (_) @ref))
  (template_function name: (_) @ref)
])
(new_expression type: (type_identifier) @ref)
(using_declaration (qualified_identifier name: (identifier) @ref))
