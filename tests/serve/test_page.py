"""The page at /docs needs no network and escapes what the table holds."""

from html.parser import HTMLParser

from softlearning.serve.limits import Limits
from softlearning.serve.page import describe_page
from softlearning.serve.rows import Inputs


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.words = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_names_columns_and_runs_nothing(classifier):
    reader = Reader()
    reader.feed(describe_page(Inputs(classifier, Limits()), Limits(), needs_token=True))
    text = "".join(reader.words)
    assert not reader.tags & {"script", "link", "img", "b", "iframe"}
    assert reader.links == []
    for word in ("age", "town", "<b>Lima</b>", "Bearer", "4,000,000 bytes"):
        assert word in text
    assert "id" not in [word.strip() for word in reader.words]  # a column that was dropped need not be sent
