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

(call_expression function: [(identifier) @ref (field_expression field: (field_identifier) @ref)])
(type_identifier) @ref
(preproc_include path: (_) @import)
