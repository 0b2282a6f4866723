from softlearning_bench.house import HOME, lines_of_code, main, sizes, walk

MODULE = '''"""A docstring
of two lines."""

# a comment
def f(x):
    """What it does."""
    return [
        x,  # two
    ]
'''


def test_comments_and_docstrings_are_no_code():
    assert lines_of_code(MODULE) == 4


def test_no_module_of_the_library_is_larger_than_350_lines():
    assert max(sizes(HOME).values()) <= 350


def test_a_walk_names_the_modules_of_the_library_alone():
    from softlearning.data.messages import nearest

    assert walk(lambda: nearest("a", ["b"])) == ["data.messages"]


def test_everything_is_printed(capsys, tmp_path):
    (tmp_path / "test_it.py").write_text("x = 1\n")
    main(str(tmp_path))
    said = capsys.readouterr().out
    for words in (
        "lines of code in",
        "the largest modules",
        "tests to code: 0.00",
        "fit passes through",
        "load passes",
    ):
        assert words in said
