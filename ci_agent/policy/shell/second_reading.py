"""Holds the program as read against a second, independent reading by the tree-sitter grammar of bash."""

import re
from collections.abc import Callable, Iterable
from functools import cache

import tree_sitter
import tree_sitter_bash

from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.reader import Role, Unit
from ci_agent.policy.shell.static_words import word_set

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_Stretch = tuple[int, int, Role]
_Children = list[tuple[tree_sitter.Node, str]]
"""The children of a node, each with its kind, which the node makes anew whenever it is asked."""

_LEAVES = word_set(
    "word number string_content raw_string ansi_c_string variable_name special_variable_name test_operator regex "
    "file_descriptor comment"
)
_KINDS = word_set(
    """
    program command command_name word number concatenation string string_content raw_string ansi_c_string
    simple_expansion expansion variable_name special_variable_name command_substitution process_substitution
    arithmetic_expansion binary_expression unary_expression postfix_expression ternary_expression
    parenthesized_expression test_operator test_command regex extglob_pattern variable_assignment
    variable_assignments array declaration_command unset_command redirected_statement file_redirect
    herestring_redirect file_descriptor list pipeline negated_command compound_statement subshell if_statement
    elif_clause else_clause while_statement for_statement c_style_for_statement do_group case_statement case_item
    function_definition comment brace_expression subscript
    """
)
"""The kinds of nodes that are understood, without and with others inside; any other is a disagreement."""

_REDIRECTS = frozenset({"file_redirect", "herestring_redirect"})
_EXPRESSIONS = word_set(
    "arithmetic_expansion binary_expression c_style_for_statement command_name concatenation parenthesized_expression "
    "string ternary_expression"
)
"""In these, what looks like an assignment is none that stands before a command."""
_NO_WORDS = _REDIRECTS | {"variable_assignment"}
"""The children of a command that are none of its words."""


def check_agreement(units: Iterable[Unit]) -> None:
    """Raise UnparsableError where the two readings of a stretch of text see different commands."""
    for unit in units:
        source, shift = _prepare(unit)
        found = _read(source, unit, shift)
        expected = [(start + shift, end + shift, role) for start, end, role in unit.roles]
        if unit.string:
            expected += [(0, 1, "name"), (2, len(source), "argument")]
        expected.sort()
        found.sort()
        if expected != found:
            differing = sorted(set(expected).symmetric_difference(found)) or expected
            raise _disagreement(unit, *differing[0][:2], shift)


def _prepare(unit: Unit) -> tuple[bytes, int]:
    """The text as the grammar gets it, and by how much positions in it are moved."""
    pieces, position = list[str](), unit.start
    for mask in sorted(unit.masks):
        if mask.start >= position:
            pieces += (unit.text[position : mask.start], mask.fill * (mask.end - mask.start))
            position = mask.end
    pieces.append(unit.text[position : unit.end])
    text = "".join(pieces)
    source = f': "{text}"' if unit.string else text
    ascii_source = source if source.isascii() else _NOT_ASCII.sub("x", source)
    return ascii_source.encode("ascii"), (3 if unit.string else 0) - unit.start


def _disagreement(unit: Unit, start: int, end: int, shift: int) -> UnparsableError:
    return UnparsableError(
        "shell syntax that is not understood with certainty", unit.outer or (start - shift, end - shift)
    )


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_bash.language())


def _read(source: bytes, unit: Unit, shift: int) -> list[_Stretch]:
    """The commands, words and redirections that the grammar sees."""
    root = tree_sitter.Parser(_language()).parse(source).root_node
    if root.has_error:
        broken = _find_error(root)
        raise _disagreement(unit, broken.start_byte, broken.end_byte, shift)
    found: list[_Stretch] = []
    nodes = [(root, root.type)]
    while nodes:
        node, kind = nodes.pop()
        children = [(child, child.type) for child in node.children]
        for child, child_kind in children:
            if child_kind not in _LEAVES and child.is_named:
                if child_kind not in _KINDS:
                    raise _disagreement(unit, child.start_byte, child.end_byte, shift)
                nodes.append((child, child_kind))
        if kind not in _EXPRESSIONS:
            _NOTES.get(kind, _note_assignments)(node, children, found)
    return found


def _find_error(root: tree_sitter.Node) -> tree_sitter.Node:
    """The innermost node that does not parse."""
    node = root
    while inner := [child for child in node.children if child.has_error]:
        node = inner[0]
    return node


def _note_assignments(_: tree_sitter.Node, children: _Children, found: list[_Stretch]) -> None:
    for child, kind in children:
        if kind == "variable_assignment":
            found.append((*child.byte_range, "assignment"))


def _note_command(_: tree_sitter.Node, children: _Children, found: list[_Stretch]) -> None:
    spans = [child.byte_range for child, kind in children if kind not in _NO_WORDS]
    words = _join(spans)
    if len(spans) < len(children):
        _note_assignments(_, children, found)
        words = sorted(words + _note_redirects(children, found))
    _note_words(words, found, named=False)


def _note_declaration(_: tree_sitter.Node, children: _Children, found: list[_Stretch]) -> None:
    _note_words(_join([child.byte_range for child, _ in children]), found, named=False)


def _note_test(node: tree_sitter.Node, _: _Children, found: list[_Stretch]) -> None:
    found.append((*node.byte_range, "test"))


def _note_items(node: tree_sitter.Node, _: _Children, found: list[_Stretch]) -> None:
    items = _join([item.byte_range for item in node.children_by_field_name("value")])
    found += ((start, end, "item") for start, end in items)


def _note_redirected(_: tree_sitter.Node, children: _Children, found: list[_Stretch]) -> None:
    _note_assignments(_, children, found)
    _note_words(_note_redirects(children, found), found, named=children[0][1] not in _REDIRECTS)


def _note_compound(_: tree_sitter.Node, children: _Children, found: list[_Stretch]) -> None:
    if children[0][1] != "((":
        _note_assignments(_, children, found)


_NOTES: dict[str, Callable[[tree_sitter.Node, _Children, list[_Stretch]], None]] = {
    "command": _note_command,
    "compound_statement": _note_compound,
    "declaration_command": _note_declaration,
    "unset_command": _note_declaration,
    "test_command": _note_test,
    "for_statement": _note_items,
    "redirected_statement": _note_redirected,
}


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words that nodes make; nodes with nothing between them are one word."""
    words = spans[:1]
    for span in spans[1:]:
        if words[-1][1] == span[0]:
            words[-1] = (words[-1][0], span[1])
        else:
            words.append(span)
    return words


def _note_words(words: list[tuple[int, int]], found: list[_Stretch], *, named: bool) -> None:
    """Note the words of a command; the first is its name unless that stands elsewhere."""
    role: Role = "argument" if named else "name"
    for start, end in words:
        found.append((start, end, role))
        role = "argument"


def _note_redirects(children: _Children, found: list[_Stretch]) -> list[tuple[int, int]]:
    """Note the targets; returns the words behind them, which are the command's."""
    return [word for child, kind in children if kind in _REDIRECTS for word in _note_redirect(child, found)]


def _note_redirect(node: tree_sitter.Node, found: list[_Stretch]) -> list[tuple[int, int]]:
    """Note the target; the words behind it, which the grammar takes for more targets, are the command's."""
    operators = [child for child in node.children if not child.is_named]
    if operators and operators[0].type in {">&-", "<&-"}:
        found.append((node.end_byte - 1, node.end_byte, "target"))
        return []
    spans = [child.byte_range for child in node.children if child.is_named and child.type != "file_descriptor"]
    words = _join(spans)
    if words:
        found.append((*words[0], "target"))
    return words[1:]
