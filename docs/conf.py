"""Sphinx: `make docs`."""

from softlearning import __version__

project = "softlearning"
author = "the softlearning developers"
copyright = "2026, the softlearning developers"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "softlearning"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_show_sourcelink = False
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
suppress_warnings = ["config.cache"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
}


def write_claim_pages() -> None:
    """One page a statement of the paper: its verdict is the docstring of its test file, its evidence the tests."""
    import ast
    from pathlib import Path

    here = Path(__file__).parent
    folder = here / "claims"
    folder.mkdir(exist_ok=True)
    for path in sorted((here.parent / "tests" / "claims").glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        statement, _, verdict = (ast.get_docstring(tree) or path.stem).partition("\n\n")
        title = path.stem.removeprefix("test_").replace("_", " ").capitalize()
        tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        evidence = "\n".join(f"- {name.removeprefix('test_').replace('_', ' ')}" for name in tests)
        words = "\n".join(f"    {line}" for line in f"{statement}\n\n{verdict}".splitlines())
        page = f"{title}\n{'=' * len(title)}\n\n.. code-block:: text\n\n{words}\n\n"
        page += f"Tested by ``tests/claims/{path.name}``:\n\n{evidence}\n"
        (folder / f"{path.stem.removeprefix('test_')}.rst").write_text(page, encoding="utf-8")


def take_over_the_benchmark() -> None:
    """The page that `softlearning bench report` wrote, with its figures and the ledger of claims."""
    import shutil
    from pathlib import Path

    here = Path(__file__).parent
    results, folder = here.parent / "benchmarks" / "results" / "paper", here / "benchmark"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(results / "figures", folder / "figures")
    shutil.copy(results / "report.md", folder / "index.md")


def take_over_the_real_tables() -> None:
    """The pages that `softlearning bench report` wrote of real tables, and those beside TabArena's results."""
    import shutil
    from pathlib import Path

    here = Path(__file__).parent
    results, folder = here.parent / "benchmarks" / "results", here / "real_tables"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, page in (
        ("confirmation_2", "index"),
        ("confirmation", "confirmation"),
        ("real", "first"),
        ("choose", "choose"),
    ):
        for kind, to in (("real", page), ("tabarena", f"{page}_tabarena")):
            source = results / name / f"{kind}.md"
            if source.exists():
                text = source.read_text(encoding="utf-8").replace(f"]({kind}.svg)", f"]({to}.svg)")
                (folder / f"{to}.md").write_text(text, encoding="utf-8")
                shutil.copy(source.with_suffix(".svg"), folder / f"{to}.svg")


write_claim_pages()
take_over_the_benchmark()
take_over_the_real_tables()
