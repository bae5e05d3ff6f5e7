(comment) @comment
(class name: (_) @name superclass: (_)? body: (_)? @body) @def.class
(module name: (_) @name body: (_)? @body) @def.module
(method name: (_) @name body: (_)? @body) @def.function
(singleton_method object: (constant) @container name: (_) @name body: (_)? @body) @def.function
(singleton_method name: (_) @name body: (_)? @body) @def.function
(assignment left: (constant) @name) @def.constant
(call method: (identifier) @_maker arguments: (argument_list (simple_symbol) @name)
  (#any-of? @_maker "attr_accessor" "attr_reader" "attr_writer")) @def.property
(call method: (identifier) @_maker arguments: (argument_list . (simple_symbol) @name) block: (_) @body
  (#any-of? @_maker "define_method")) @def.method
(call method: (identifier) @_suite
  arguments: (argument_list . [(string . (string_content) @name) (constant) @name (scope_resolution) @name])
  block: (_) @body (#any-of? @_suite "describe" "context" "it" "specify" "feature" "scenario" "shared_examples")) @def.heading
(call receiver: (constant) method: (identifier) @_suite
  arguments: (argument_list . [(string . (string_content) @name) (constant) @name (scope_resolution) @name])
  block: (_) @body (#any-of? @_suite "describe")) @def.heading
(alias name: (_) @name) @def.method

(call method: [(identifier) @ref (constant) @ref])
(call receiver: (constant) @ref)
(superclass [(constant) @ref (scope_resolution name: (constant) @ref)])
(call method: (identifier) @_mixin arguments: (argument_list [(constant) @ref (scope_resolution name: (constant) @ref)])
  (#any-of? @_mixin "include" "extend" "prepend"))
(call method: (identifier) @_require arguments: (argument_list . (string . (string_content) @import))
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
