"""Everything in the browser: drop a table, correct what was understood, fit, read the report, score another file.

    serve_studio(folder)    the page and what it calls, on the loopback address      `app`
    Session(folder)         what is in the folder, and the fit that runs there       `session`

The fit is `softlearning fit` in a process of its own, with a checkpoint in the folder: whatever is killed, the next
studio in the same folder goes on.
"""

from __future__ import annotations

from softlearning.studio.app import make_studio, serve_studio
from softlearning.studio.session import Session

__all__ = ["Session", "make_studio", "serve_studio"]
