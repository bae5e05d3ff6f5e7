(comment) @comment
(class_definition name: (identifier) @name body: (_) @body) @def.class
(function_definition name: (identifier) @name body: (_) @body) @def.function
(module (expression_statement (assignment left: (identifier) @name) @def.variable))
(module (assignment left: (identifier) @name) @def.variable)
(module (expression_statement (assignment left: (pattern_list (identifier) @name)) @def.variable))
(module (assignment left: (pattern_list (identifier) @name)) @def.variable)
(module (type_alias_statement left: (type (identifier) @name)) @def.type)
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @def.field)))
(class_definition body: (block (assignment left: (identifier) @name) @def.field))

(call function: [(identifier) @ref (attribute attribute: (identifier) @ref)])
(decorator [(identifier) @ref (attribute attribute: (identifier) @ref)])
(type (identifier) @ref)
(type (subscript value: (identifier) @ref))
(type (generic_type (identifier) @ref))
(class_definition superclasses: (argument_list [(identifier) @ref (attribute attribute: (identifier) @ref)]))

(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(import_from_statement module_name: (_) @import)
(import_from_statement name: [(dotted_name (identifier) @ref) (aliased_import name: (dotted_name (identifier) @ref))])
