"""A model behind HTTP: POST /predict, GET /health, /ready, /metrics, /docs, /openapi.json. Made to be sent anything.

    serve_model(model)      open a port, fork workers that share the model, watch them      `workers`
    make_app(model)         the application alone, for an ASGI server of yours              `app`

`door` decides who may hold a connection and for how long, `rows` reads requests, `metrics` counts, `page` is /docs.
"""

from __future__ import annotations

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError:  # pragma: no cover
    raise ImportError("serving needs FastAPI and uvicorn: pip install 'softlearning[serve]'") from None

from softlearning.serve.app import make_app
from softlearning.serve.limits import Limits
from softlearning.serve.workers import serve_model

__all__ = ["Limits", "make_app", "serve_model"]
