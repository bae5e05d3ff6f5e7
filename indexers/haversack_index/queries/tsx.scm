; What TSX has beside TypeScript, whose query comes before this.
(jsx_opening_element name: (identifier) @ref)
(jsx_self_closing_element name: (identifier) @ref)
