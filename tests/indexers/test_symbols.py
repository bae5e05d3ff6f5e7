"""Definitions, references and imports, one sample a language."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from haversack_index.chunk import parse_file
from haversack_index.types import ParsedFile, SymbolKind


@dataclass(frozen=True, slots=True)
class Sample:
    """`symbols` as kind, dotted name, lines, line of the name, first line after the header."""

    text: str
    symbols: tuple[str, ...]
    references: tuple[str, ...]
    imports: tuple[str, ...]


SAMPLES = {
    "a.py": Sample(
        """\
import os.path as p
from .b import (c, d as e)
LIMIT = 3
@wrap
class A(Base):
    size: int = 1
    def __init__(self, x: Thing) -> None:
        self.go(x)
    @staticmethod
    async def m(
        a,
    ):
        return helper(a)
def f(): return A()
""",
        (
            "constant LIMIT 2-3 @2 head 3",
            "class A 3-13 @4 head 5",
            "field A.size 5-6 @5 head 6",
            "constructor A.__init__ 6-8 @6 head 7",
            "method A.m 8-13 @9 head 12",
            "function f 13-14 @13 head 14",
        ),
        (
            "c",
            "d",
            "wrap",
            "Base in A",
            "int in A.size",
            "Thing in A.__init__",
            "go in A.__init__",
            "staticmethod in A",
            "helper in A.m",
            "A in f",
        ),
        (
            "os.path",
            ".b",
        ),
    ),
    "a.js": Sample(
        """\
const m = require("m");
import { b as c } from "./b";
exports.foo = function (x) {
  return bar(x);
};
app.use = function use(fn) {
  this.lazy(fn);
};
Foo.prototype.run = function () {};
module.exports = {
  start: function () { go(); },
  stop() {},
};
const arrow = async (x) => {
  return new Thing(x);
};
class A extends B {
  size = 1;
  handle = () => { this.go(); };
  constructor(a) { super(a); }
  #secret() {}
}
describe("a box", () => {
  it("opens", () => {});
});
""",
        (
            "variable m 0-1 @0 head 1",
            "function foo 2-5 @2 head 3",
            "method app.use 5-8 @5 head 6",
            "method Foo.run 8-9 @8 head 9",
            "method start 10-11 @10 head 11",
            "method stop 11-12 @11 head 12",
            "function arrow 13-16 @13 head 14",
            "class A 16-22 @16 head 17",
            "field A.size 17-18 @17 head 18",
            "method A.handle 18-19 @18 head 19",
            "constructor A.constructor 19-20 @19 head 20",
            "method A.#secret 20-21 @20 head 21",
            "heading a box 22-25 @22 head 23",
            "heading a box.opens 23-24 @23 head 24",
        ),
        (
            "require in m",
            "b",
            "bar in foo",
            "lazy in app.use",
            "go in start",
            "Thing in arrow",
            "B in A",
            "go in A.handle",
            "describe in a box",
            "it in a box.opens",
        ),
        (
            "m",
            "./b",
        ),
    ),
    "a.jsx": Sample(
        """\
export default function App({ x }) {
  return <Panel title={x}><Row /></Panel>;
}
""",
        ("function App 0-3 @0 head 1",),
        (
            "Panel in App",
            "Row in App",
        ),
        (),
    ),
    "a.ts": Sample(
        """\
import x = require("y");
import type { T } from "./t";
@Dec()
export class A<T> extends B<T> {
  private a: string = "x";
  constructor(private readonly s: Service) {}
  @On("x")
  onX(e: Event): void {
    this.s.run(e);
  }
}
export interface I {
  a: string;
  m(x: number): string;
}
export type Alias = A | C;
export enum E { P, Q }
namespace N {
  export function f() {}
}
export const g = <T,>(a: T): T => a;
""",
        (
            "class A 2-11 @3 head 4",
            "field A.a 4-5 @4 head 5",
            "constructor A.constructor 5-6 @5 head 6",
            "method A.onX 6-10 @7 head 8",
            "interface I 11-15 @11 head 12",
            "field I.a 12-13 @12 head 13",
            "method I.m 13-14 @13 head 14",
            "type Alias 15-16 @15 head 16",
            "enum E 16-17 @16 head 17",
            "namespace N 17-20 @17 head 18",
            "function N.f 18-19 @18 head 19",
            "function g 20-21 @20 head 21",
        ),
        (
            "T",
            "Dec",
            "T in A",
            "B in A",
            "Service in A.constructor",
            "On in A",
            "Event in A.onX",
            "run in A.onX",
            "A in Alias",
            "C in Alias",
            "T in g",
        ),
        (
            "y",
            "./t",
        ),
    ),
    "a.tsx": Sample(
        """\
export const View: FC<Props> = ({ a }) => {
  return <Row a={a} />;
};
""",
        ("function View 0-3 @0 head 1",),
        (
            "FC in View",
            "Props in View",
            "Row in View",
        ),
        (),
    ),
    "a.go": Sample(
        """\
package main
import (
	"fmt"
)
type Foo struct {
	A int
}
type I interface {
	Run(x int) error
}
const X = 1
func (f *Foo) M(a int) error {
	fmt.Println(a)
	return nil
}
func New() *Foo { return &Foo{} }
""",
        (
            "struct Foo 4-7 @4 head 5",
            "field Foo.A 5-6 @5 head 6",
            "interface I 7-10 @7 head 8",
            "method I.Run 8-9 @8 head 9",
            "constant X 10-11 @10 head 11",
            "method Foo.M 11-15 @11 head 12",
            "function New 15-16 @15 head 16",
        ),
        (
            "int in Foo.A",
            "int in I.Run",
            "error in I.Run",
            "Foo in Foo.M",
            "int in Foo.M",
            "error in Foo.M",
            "Println in Foo.M",
            "Foo in New",
        ),
        ("fmt",),
    ),
    "a.rs": Sample(
        """\
use std::io::Read;
#[derive(Debug)]
pub struct P<T> {
    x: T,
}
impl<T> Draw for P<T> {
    fn new() -> Self {
        go(1)
    }
}
pub trait Draw {
    fn draw(&self);
}
enum E { A(i32), B }
mod m {
    pub fn z() {}
}
macro_rules! mm { () => {} }
const LIMIT: usize = 3;
""",
        (
            "struct P 1-5 @2 head 3",
            "field P.x 3-4 @3 head 4",
            "method P.new 6-9 @6 head 7",
            "trait Draw 10-13 @10 head 11",
            "method Draw.draw 11-12 @11 head 12",
            "enum E 13-14 @13 head 14",
            "constant E.A 13-14 @13 head 14",
            "constant E.B 13-14 @13 head 14",
            "module m 14-17 @14 head 15",
            "function m.z 15-16 @15 head 16",
            "macro mm 17-18 @17 head 18",
            "constant LIMIT 18-19 @18 head 19",
        ),
        (
            "std",
            "Read",
            "T in P",
            "T in P.x",
            "Draw in P",
            "Self in P.new",
            "go in P.new",
        ),
        ("std::io::Read",),
    ),
    "a.java": Sample(
        """\
package a.b;
import java.util.List;
@Service
public class A extends B implements C {
    private int size = 1;
    public A(Thing x) {
        super(x);
    }
    @Override
    public List<T> all() {
        return new Finder().find();
    }
    enum E { P }
}
interface I { int k(); }
record R(int a) {}
""",
        (
            "class A 2-14 @3 head 4",
            "field A.size 4-5 @4 head 5",
            "constructor A.A 5-8 @5 head 6",
            "method A.all 8-12 @9 head 10",
            "enum A.E 12-13 @12 head 13",
            "constant A.E.P 12-13 @12 head 13",
            "interface I 14-15 @14 head 15",
            "method I.k 14-15 @14 head 15",
            "class R 15-16 @15 head 16",
        ),
        (
            "List",
            "Service in A",
            "B in A",
            "C in A",
            "Thing in A.A",
            "Override in A.all",
            "List in A.all",
            "T in A.all",
            "Finder in A.all",
            "find in A.all",
        ),
        ("java.util.List",),
    ),
    "a.c": Sample(
        """\
#include <stdio.h>
#define MAX(a, b) \\
  ((a) > (b) ? (a) : (b))
static int foo(int a,
               char *b)
{
  return bar(a);
}
struct S { int a; };
typedef struct { int q; } T;
typedef int (*callback)(int);
enum E { A };
extern int proto(int);
static const char *names[] = {"a"};
EXPORT(int) odd(int x) { return 1; }
""",
        (
            "macro MAX 1-3 @1 head 3",
            "function foo 3-8 @3 head 6",
            "struct S 8-9 @8 head 9",
            "field S.a 8-9 @8 head 9",
            "struct T 9-10 @9 head 10",
            "field T.q 9-10 @9 head 10",
            "type callback 10-11 @10 head 11",
            "enum E 11-12 @11 head 12",
            "constant E.A 11-12 @11 head 12",
            "function proto 12-13 @12 head 13",
            "variable names 13-14 @13 head 14",
            "function odd 14-15 @14 head 15",
        ),
        ("bar in foo",),
        ("stdio.h",),
    ),
    "a.cpp": Sample(
        """\
#include "a.h"
namespace n {
template <typename T>
class A : public B<T> {
 public:
  A();
  int f(int x) const { return g(x); }
  int size_;
};
}
int A::b(int x) {
  p->d();
  return N::e();
}
A<int>::A() : x(1) {}
enum class E { P };
using Alias = int;
""",
        (
            "namespace n 1-10 @1 head 2",
            "class n.A 2-9 @3 head 4",
            "constructor n.A.A 5-6 @5 head 6",
            "method n.A.f 6-7 @6 head 7",
            "field n.A.size_ 7-8 @7 head 8",
            "method A.b 10-14 @10 head 11",
            "constructor A.A 14-15 @14 head 15",
            "enum E 15-16 @15 head 16",
            "constant E.P 15-16 @15 head 16",
            "type Alias 16-17 @16 head 17",
        ),
        (
            "T in n",
            "B in n.A",
            "T in n.A",
            "g in n.A.f",
            "d in A.b",
            "e in A.b",
        ),
        ("a.h",),
    ),
    "a.cs": Sample(
        """\
using System.IO;
namespace A.B
{
    [Attr]
    public class C<T> : D
    {
        public int P { get; set; }
        private int size = 1;
        public C(Thing a) {}
        public async Task M(string s)
        {
            await x.Foo(s);
        }
    }
    interface I { void Q(); }
    record R(int A);
    enum E { X }
    struct S {}
}
""",
        (
            "namespace A.B 1-19 @1 head 3",
            "class A.B.C 3-14 @4 head 6",
            "property A.B.C.P 6-7 @6 head 7",
            "field A.B.C.size 7-8 @7 head 8",
            "constructor A.B.C.C 8-9 @8 head 9",
            "method A.B.C.M 9-13 @9 head 11",
            "interface A.B.I 14-15 @14 head 15",
            "method A.B.I.Q 14-15 @14 head 15",
            "class A.B.R 15-16 @15 head 16",
            "enum A.B.E 16-17 @16 head 17",
            "constant A.B.E.X 16-17 @16 head 17",
            "struct A.B.S 17-18 @17 head 18",
        ),
        (
            "Attr in A.B.C",
            "D in A.B.C",
            "Thing in A.B.C.C",
            "Task in A.B.C.M",
            "Foo in A.B.C.M",
        ),
        ("System.IO",),
    ),
    "a.rb": Sample(
        """\
require "a/b"
module A
  class B < C::D
    LIMIT = 1
    attr_reader :size
    include Mixin
    def initialize(a)
      helper(a)
    end
    def self.build; end
  end
end
describe "a box" do
  it "opens" do
    run_it
  end
end
""",
        (
            "module A 1-12 @1 head 2",
            "class A.B 2-11 @2 head 3",
            "constant A.B.LIMIT 3-4 @3 head 4",
            "property A.B.size 4-5 @4 head 5",
            "constructor A.B.initialize 6-9 @6 head 7",
            "method A.B.build 9-10 @9 head 10",
            "heading a box 12-17 @12 head 13",
            "heading a box.opens 13-16 @13 head 14",
        ),
        (
            "require",
            "D in A.B",
            "attr_reader in A.B.size",
            "include in A.B",
            "Mixin in A.B",
            "helper in A.B.initialize",
            "describe in a box",
            "it in a box.opens",
        ),
        ("a/b",),
    ),
    "a.php": Sample(
        """\
<?php
namespace A\\B;
use C\\D;
#[At]
abstract class E extends F implements G
{
    const LIMIT = 1;
    private $p = 2;
    public function __construct(private int $a)
    {
        $this->m();
    }
    abstract function z(): int;
}
interface I { function q(); }
trait T { function t() { return new Q(); } }
function foo(int $x) {}
""",
        (
            "class E 3-14 @4 head 6",
            "constant E.LIMIT 6-7 @6 head 7",
            "field E.p 7-8 @7 head 8",
            "constructor E.__construct 8-12 @8 head 10",
            "property E.a 8-9 @8 head 9",
            "method E.z 12-13 @12 head 13",
            "interface I 14-15 @14 head 15",
            "method I.q 14-15 @14 head 15",
            "trait T 15-16 @15 head 16",
            "method T.t 15-16 @15 head 16",
            "function foo 16-17 @16 head 17",
        ),
        (
            "At in E",
            "F in E",
            "G in E",
            "m in E.__construct",
            "Q in T.t",
        ),
        ("C\\D",),
    ),
    "a.kt": Sample(
        """\
import c.d.E
@An class A(val x: Int) : B() {
    val p = 1
    fun m(s: String): Int {
        return go(s)
    }
    companion object {
        fun s() {}
    }
}
object O { fun z() = 1 }
interface I { fun q() }
enum class En { P }
fun String.ext(a: Int): Foo { return bar() }
typealias T = Int
""",
        (
            "class A 1-10 @1 head 2",
            "property A.x 1-2 @1 head 2",
            "property A.p 2-3 @2 head 3",
            "method A.m 3-6 @3 head 4",
            "method A.s 7-8 @7 head 8",
            "class O 10-11 @10 head 11",
            "method O.z 10-11 @10 head 11",
            "interface I 11-12 @11 head 12",
            "method I.q 11-12 @11 head 12",
            "enum En 12-13 @12 head 13",
            "constant En.P 12-13 @12 head 13",
            "method String.ext 13-14 @13 head 14",
            "type T 14-15 @14 head 15",
        ),
        (
            "E",
            "An in A",
            "Int in A.x",
            "B in A",
            "String in A.m",
            "Int in A.m",
            "go in A.m",
            "String in String.ext",
            "Int in String.ext",
            "Foo in String.ext",
            "bar in String.ext",
            "Int in T",
        ),
        ("c.d.E",),
    ),
    "a.swift": Sample(
        """\
import Foundation
class A: B {
    var p: Int = 1
    init(x: Int) { self.m() }
    func m(_ s: String) -> Int {
        return bar()
    }
}
struct S { }
enum E { case a }
protocol P {
    func z()
}
extension A: P {
    func ext() {}
}
func top() {}
""",
        (
            "class A 1-8 @1 head 2",
            "property A.p 2-3 @2 head 3",
            "constructor A.init 3-4 @3 head 4",
            "method A.m 4-7 @4 head 5",
            "struct S 8-9 @8 head 9",
            "enum E 9-10 @9 head 10",
            "constant E.a 9-10 @9 head 10",
            "interface P 10-13 @10 head 11",
            "method P.z 11-12 @11 head 12",
            "method A.ext 14-15 @14 head 15",
            "function top 16-17 @16 head 17",
        ),
        (
            "B in A",
            "Int in A.p",
            "Int in A.init",
            "m in A.init",
            "String in A.m",
            "Int in A.m",
            "bar in A.m",
            "P in A",
        ),
        ("Foundation",),
    ),
    "a.sh": Sample(
        """\
source ./lib.sh
LIMIT=1
foo() {
  bar "$1"
}
function baz {
  foo | qux
}
""",
        (
            "constant LIMIT 1-2 @1 head 2",
            "function foo 2-5 @2 head 3",
            "function baz 5-8 @5 head 6",
        ),
        (
            "source",
            "bar in foo",
            "foo in baz",
            "qux in baz",
        ),
        ("./lib.sh",),
    ),
    "a.lua": Sample(
        """\
local m = require("a.b")
local M = {}
function M.foo(a)
  bar(a)
end
function M:run() self:q() end
local function helper() end
M.x = function() end
return M
""",
        (
            "variable m 0-1 @0 head 1",
            "variable M 1-2 @1 head 2",
            "method M.foo 2-5 @2 head 3",
            "method M.run 5-6 @5 head 6",
            "function helper 6-7 @6 head 7",
            "method M.x 7-8 @7 head 8",
        ),
        (
            "require in m",
            "bar in M.foo",
            "q in M.run",
        ),
        ("a.b",),
    ),
}


def symbol_lines(parsed: ParsedFile) -> tuple[str, ...]:
    return tuple(
        f"{symbol.kind.value} {'.'.join((*symbol.container, symbol.name))} {symbol.span.start}-{symbol.span.end}"
        f" @{symbol.line} head {symbol.signature_end}"
        for symbol in parsed.symbols
    )


@pytest.mark.parametrize("path", SAMPLES)
def test_sample(path: str) -> None:
    """Names, kinds, containers, headers, references and imports of each language are as listed."""
    sample = SAMPLES[path]
    parsed = parse_file(path, sample.text)
    assert parsed.note == ""
    assert symbol_lines(parsed) == sample.symbols
    assert (
        tuple(f"{one.name} in {one.within}" if one.within else one.name for one in parsed.references)
        == sample.references
    )
    assert parsed.imports == sample.imports


@pytest.mark.parametrize(
    ("path", "text", "signature"),
    [
        ("a.py", "@wrap\nasync def  f(\n    a: int,\n) -> Foo:\n    pass\n", "@wrap async def f( a: int, ) -> Foo"),
        ("a.js", "const f = async (x) => {\n};\n", "const f = async (x)"),
        ("a.go", "func (f *Foo) M(a int) error {\n}\n", "func (f *Foo) M(a int) error"),
        ("a.c", "typedef struct {\n  int a;\n} T;\n", "typedef struct T"),
        ("a.py", "x = [" + "1, " * 500 + "]\n", "x = [" + ("1, " * 500)[:194] + "…"),
    ],
)
def test_signature_is_one_folded_line(path: str, text: str, signature: str) -> None:
    """White space is folded, the opening of the body is left out, and 200 characters are the most."""
    assert parse_file(path, text).symbols[0].signature == signature


def test_references_are_listed_once_a_definition() -> None:
    """The same call twice in one function is one reference, in two functions two."""
    text = "def f():\n    go()\n    go()\n\ndef g():\n    go()\n"
    assert [(one.name, one.line, one.within) for one in parse_file("a.py", text).references] == [
        ("go", 1, "f"),
        ("go", 5, "g"),
    ]


def test_values_inside_functions_are_not_symbols() -> None:
    """Local constants are nobody's business; local functions are."""
    text = "fn f() {\n    const A: i32 = 1;\n    fn inner() {}\n}\n"
    assert [(one.name, one.kind) for one in parse_file("a.rs", text).symbols] == [
        ("f", SymbolKind.FUNCTION),
        ("inner", SymbolKind.FUNCTION),
    ]
