[(line_comment) (block_comment)] @comment
(attribute_item) @lead
(function_item name: (identifier) @name body: (_) @body) @def.function
(function_signature_item name: (identifier) @name) @def.function
(struct_item name: (_) @name body: (field_declaration_list) @body) @def.struct
(struct_item name: (_) @name) @def.struct
(union_item name: (_) @name body: (_) @body) @def.struct
(enum_item name: (_) @name body: (_) @body) @def.enum
(enum_variant name: (_) @name) @def.constant
(trait_item name: (_) @name body: (_) @body) @def.trait
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name) (scoped_type_identifier name: (_) @name)
  (reference_type (_) @name) (primitive_type) @name] body: (_) @body) @scope
(mod_item name: (_) @name body: (_) @body) @def.module
(macro_definition name: (_) @name) @def.macro
(field_declaration name: (_) @name) @def.field
(const_item name: (_) @name) @def.constant
(static_item name: (_) @name) @def.variable
(type_item name: (_) @name) @def.type
(associated_type name: (_) @name) @def.type

(call_expression function: [
  (identifier) @ref
  (scoped_identifier name: (identifier) @ref)
  (field_expression field: (field_identifier) @ref)
  (generic_function function: [
    (identifier) @ref
    (scoped_identifier name: (identifier) @ref)
    (field_expression field: (field_identifier) @ref)
  ])
])
(scoped_identifier path: (identifier) @ref)
(macro_invocation macro: [(identifier) @ref (scoped_identifier name: (identifier) @ref)])
(type_identifier) @ref
(struct_expression name: (type_identifier) @ref)
(use_list (identifier) @ref)
(use_declaration argument: (scoped_identifier name: (identifier) @ref))
(use_declaration argument: (_) @import)
(mod_item name: (_) @import !body)
(extern_crate_declaration name: (_) @import)
