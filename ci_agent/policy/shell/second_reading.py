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
    return _NOT_ASCII.sub("x", source).encode("ascii"), (3 if unit.string else 0) - unit.start


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
    nodes = [root]
    while nodes:
        node = nodes.pop()
        kind, children = node.type, node.children
        for child in children:
            if child.is_named and child.type not in _LEAVES:
                if child.type not in _KINDS:
                    raise _disagreement(unit, child.start_byte, child.end_byte, shift)
                nodes.append(child)
        note = _NOTES.get(kind, _note_assignments)
        note(node, children, found)
    return found


def _find_error(root: tree_sitter.Node) -> tree_sitter.Node:
    """The innermost node that does not parse."""
    node = root
    while inner := [child for child in node.children if child.has_error]:
        node = inner[0]
    return node


def _note_assignments(_: tree_sitter.Node, children: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    found += (
        (child.start_byte, child.end_byte, "assignment") for child in children if child.type == "variable_assignment"
    )


def _note_command(_: tree_sitter.Node, children: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    words: list[tuple[int, int]] = []
    late: list[tuple[int, int]] = []
    for child in children:
        kind = child.type
        if kind in _REDIRECTS:
            late += _note_redirect(child, found)
        elif kind == "variable_assignment":
            found.append((child.start_byte, child.end_byte, "assignment"))
        else:
            _add_word(words, child)
    _note_words(sorted(words + late) if late else words, found, named=False)


def _note_declaration(_: tree_sitter.Node, children: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    _note_words(_join(children), found, named=False)


def _note_test(node: tree_sitter.Node, _: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    found.append((node.start_byte, node.end_byte, "test"))


def _note_items(node: tree_sitter.Node, _: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    found += ((start, end, "item") for start, end in _join(node.children_by_field_name("value")))


def _note_redirected(_: tree_sitter.Node, children: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    _note_assignments(_, children, found)
    late = [word for child in children if child.type in _REDIRECTS for word in _note_redirect(child, found)]
    _note_words(late, found, named=children[0].type not in _REDIRECTS)


def _note_compound(_: tree_sitter.Node, children: list[tree_sitter.Node], found: list[_Stretch]) -> None:
    if children[0].type != "((":
        _note_assignments(_, children, found)


def _note_nothing(_: tree_sitter.Node, __: list[tree_sitter.Node], ___: list[_Stretch]) -> None:
    """In expressions, what looks like an assignment is none that stands before a command."""


_NOTES: dict[str, Callable[[tree_sitter.Node, list[tree_sitter.Node], list[_Stretch]], None]] = {
    "command": _note_command,
    "compound_statement": _note_compound,
    "declaration_command": _note_declaration,
    "unset_command": _note_declaration,
    "test_command": _note_test,
    "for_statement": _note_items,
    "redirected_statement": _note_redirected,
    **dict.fromkeys(
        (
            "arithmetic_expansion",
            "binary_expression",
            "c_style_for_statement",
            "command_name",
            "concatenation",
            "parenthesized_expression",
            "string",
            "ternary_expression",
        ),
        _note_nothing,
    ),
}


def _join(nodes: Iterable[tree_sitter.Node]) -> list[tuple[int, int]]:
    """The words that nodes make; nodes with nothing between them are one word."""
    words: list[tuple[int, int]] = []
    for node in nodes:
        _add_word(words, node)
    return words


def _add_word(words: list[tuple[int, int]], node: tree_sitter.Node) -> None:
    start, end = node.start_byte, node.end_byte
    if words and words[-1][1] == start:
        words[-1] = (words[-1][0], end)
    else:
        words.append((start, end))


def _note_words(words: list[tuple[int, int]], found: list[_Stretch], *, named: bool) -> None:
    """Note the words of a command; the first is its name unless that stands elsewhere."""
    for index, (start, end) in enumerate(words):
        found.append((start, end, "argument" if named or index else "name"))


def _note_redirect(node: tree_sitter.Node, found: list[_Stretch]) -> list[tuple[int, int]]:
    """Note the target; the words behind it, which the grammar takes for more targets, are the command's."""
    operators = [child for child in node.children if not child.is_named]
    if operators and operators[0].type in {">&-", "<&-"}:
        found.append((node.end_byte - 1, node.end_byte, "target"))
        return []
    words = _join(child for child in node.children if child.is_named and child.type != "file_descriptor")
    if words:
        found.append((*words[0], "target"))
    return words[1:]
