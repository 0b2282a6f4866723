"""A blend as one ONNX graph: views, members, calibration and weights, for tables of numbers (extra [onnx]).

Every member with weight is converted and compared with its own predictions before anything is written; what cannot go,
or does not come out the same, is named with the reason. `model.drop(names)` gives a model without it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from softlearning.data.views import FARTHEST, View
from softlearning.library.boosting import StoppedLightGBM
from softlearning.method.ensemble import Member, predict_members

OPSET, ML_OPSET = 15, 3  # of the operators, and of those for machine learning: trees with double thresholds
SAME = 1e-5  # largest difference of a prediction
ROWS = 1_000  # that are compared


class CannotExport(ValueError):
    """Members that have no place in an ONNX graph, with the reasons; `members` are their names."""

    def __init__(self, text: str, members: tuple[str, ...] = ()):
        super().__init__(text)
        self.members = members


def export_onnx(model: Any, path: Path | str, rows: Any = None) -> float:
    """Write the blend of a fitted model as an ONNX graph, and return the largest difference found.

    Input `X` (n, d) of doubles, in the order of the columns; output `prediction` (n, 1) or `probability` (n, C).

    Parameters
    ----------
    rows : rows to compare on, at most 1,000 of them; made up around the training columns unless given.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise ImportError("ONNX graphs need the extra: pip install 'softlearning[onnx]'") from None
    names = check_table(model)
    record = model.record_
    table = sample(model) if rows is None else model.specialist_table(rows)[:ROWS]
    graph, reasons = Graph(len(names), record.ensemble.classes), {}
    for name, weight in zip(record.support(), record.support_weights()):
        try:
            part = Graph(len(names), record.ensemble.classes)
            part.add(record.ensemble, name, 1.0)
            said = answer(onnxruntime, part.model(onnx), table)
            difference = np.abs(said - predict_members(record.ensemble, [name], table)[:, 0]).max()
            if not difference <= SAME * max(1.0, np.abs(said).max()):
                reasons[name] = f"its graph differs by {difference:.2g}"
            graph.add(record.ensemble, name, float(weight))
        except Exception as error:  # converters raise whatever they like
            reasons[name] = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    if reasons:
        named = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise CannotExport(
            f"nothing was written: {len(reasons)} of {len(record.support())} members cannot go ({named})",
            tuple(reasons),
        )
    made = graph.model(onnx)
    P = predict_members(record.ensemble, record.support(), table)
    worst = float(np.abs(answer(onnxruntime, made, table) - np.einsum("nkc,k->nc", P, record.support_weights())).max())
    Path(path).write_bytes(made.SerializeToString())
    return worst


def export_what_can(model: Any, path: Path | str, rows: Any = None) -> tuple[float, Any]:
    """As `export_onnx`, of a model without the members that cannot go, its weights solved over those that can.

    Returns the largest difference and that model, whose `cv_risk_` tells what they were worth.
    """
    try:
        return export_onnx(model, path, rows), model
    except CannotExport as error:
        record = model.record_
        kept = set(record.support()) - set(error.members)
        if not error.members or not kept:
            raise
        rest = model.drop([name for name in record.crossed.library.names if name not in kept])
    return export_onnx(rest, path, rows), rest


def check_table(model: Any) -> list[str]:
    """The names of the columns, or an error where the table holds anything but numbers without missing values."""
    schema = model.record_.training.schema
    words = [c.name for c in schema.columns if c.kept and c.type not in ("number", "boolean")]
    dropped = [c.name for c in schema.columns if not c.kept]
    if schema.form == "sparse" or words or dropped or schema.missing:
        odd = ", ".join(words + dropped) or ("missing values" if schema.missing else "a sparse matrix")
        raise CannotExport(f"nothing was written: a graph takes a table of numbers without missing values; here: {odd}")
    return [c.name for c in schema.columns] or [f"x{j}" for j in range(schema.width)]


def sample(model: Any) -> Any:
    """Rows around the training columns, as the canonical table has them."""
    record, rng = model.record_, np.random.default_rng(0)
    scaled = [v for v in record.ensemble.views.values() if v is not None and v.spread is not None and len(v.spread)]
    d = record.training.schema.width
    centre, spread = (scaled[0].centre * scaled[0].unit, scaled[0].spread * scaled[0].unit) if scaled else (0.0, 1.0)
    values = (np.asarray(centre) + np.asarray(spread) * rng.normal(size=(ROWS, d))).astype(np.float32).astype(float)
    return model.specialist_table(values)


def answer(onnxruntime: Any, made: Any, table: Any) -> np.ndarray:
    """(n, C) what a graph says of canonical rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"X": np.asarray(table, dtype=np.float64)})[0])


class Graph:
    """Nodes that grow: one output, the weighted sum of the members added."""

    def __init__(self, width: int, classes: int):
        self.width, self.classes = width, classes
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.weighted: list[str] = []
        self.count = 0

    def node(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """A node of one output, whose name is returned; arrays become constants."""
        from onnx import helper

        self.count += 1
        names = [self._constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        self.nodes.append(helper.make_node(kind, names, [f"n{self.count}"], **attributes))
        return f"n{self.count}"

    def _constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def add(self, ensemble: Any, name: str, weight: float) -> None:
        """One member of the blend with its weight: the mean of its models, calibrated."""
        if ensemble.specialists[name].level == 2:
            raise CannotExport("a stacker reads the predictions of others")
        models = [self.member(ensemble, member) for member in ensemble.members[name]]
        share = np.full(1, 1 / len(models))
        P = self.node("Sum", *(self.node("Mul", said, share) for said in models))
        calibration = ensemble.calibration[name]
        if calibration is not None:
            e, T = calibration.prior_share, calibration.temperature / ensemble.sharpness
            mixed = self.node("Add", self.node("Mul", P, np.full(1, 1 - e)), e * calibration.prior[None])
            P = self.node("Softmax", self.node("Div", self.node("Log", mixed), np.full(1, T)), axis=1)
        self.weighted.append(self.node("Mul", P, np.full(1, weight)))

    def member(self, ensemble: Any, member: Member) -> str:
        """The name of the (n, C) doubles that one model says."""
        view = None if member.view is None else ensemble.views.get(member.view)
        made, double = converted(member.model, self.width)
        if self.classes > 1 and len(getattr(member.model, "classes_", range(self.classes))) != self.classes:
            raise CannotExport("a fold lacked a class")
        X = self.view(view)
        return self.inline(made, X if double else self.node("Cast", X, to=1))

    def view(self, view: View | None) -> str:
        """The name of the table in a view."""
        if view is None:
            return "X"
        if view.pairs or view.lookups or view.dates or view.texts or (view.missing is not None and len(view.missing)):
            raise CannotExport(f"its view of the table ({view.name}) makes new columns")
        if view.name != "scaled":
            return "X" if view.unit is None else self.node("Div", "X", view.unit[None])
        unit, centre, spread = (np.atleast_2d(np.asarray(a)) for a in (view.unit, view.centre, view.spread))
        scaled = self.node("Div", self.node("Sub", self.node("Div", "X", unit), centre), spread)
        return self.node("Clip", scaled, np.array(-FARTHEST), np.array(FARTHEST))

    def inline(self, made: Any, X: str) -> str:
        """The nodes of a converted model, fed with X; the name of its probabilities or predictions as doubles."""
        from onnx import numpy_helper

        self.count += 1
        graph, prefix = made.graph, f"m{self.count}_"
        self.constants |= {prefix + c.name: numpy_helper.to_array(c) for c in graph.initializer}
        rename = lambda name: X if name == graph.input[0].name else prefix + name if name else name
        said = graph.output[-1].name
        for node in graph.node:
            if node.op_type == "ZipMap":  # probabilities by label: the last that CatBoost does
                said = node.input[0]
                continue
            inputs, outputs = [rename(n) for n in node.input], [rename(n) for n in node.output]
            del node.input[:], node.output[:]
            node.input.extend(inputs)
            node.output.extend(outputs)
            node.name = f"{prefix}{len(self.nodes)}"  # converters leave some without a name
            self.nodes.append(node)
        return self.node("Cast", rename(said), to=11)

    def model(self, onnx: Any) -> Any:
        """The whole as an ONNX model."""
        from onnx import TensorProto, helper, numpy_helper

        total = self.node("Sum", *self.weighted)
        name = "prediction" if self.classes == 1 else "probability"
        self.nodes.append(helper.make_node("Identity", [total], [name]))
        graph = helper.make_graph(
            self.nodes, "softlearning",
            [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, self.width])],
            [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None, self.classes])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def converted(estimator: Any, width: int) -> tuple[Any, bool]:
    """An ONNX model of an estimator, and whether it reads doubles."""
    if isinstance(estimator, StoppedLightGBM) or type(estimator).__module__.startswith("lightgbm"):
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType

        booster = getattr(estimator, "model_", estimator)
        types = [("x", FloatTensorType([None, width]))]
        return convert_lightgbm(booster, initial_types=types, zipmap=False, target_opset=OPSET), False
    if type(estimator).__module__.startswith("catboost"):
        return from_catboost(estimator), False
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType

    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "classes_") else None
    opsets = {"": OPSET, "ai.onnx.ml": ML_OPSET}
    types = [("x", DoubleTensorType([None, width]))]
    return to_onnx(estimator, initial_types=types, options=options, target_opset=opsets), True


def from_catboost(estimator: Any) -> Any:
    """The ONNX model that CatBoost writes of itself."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        estimator.save_model(f"{folder}/model.onnx", format="onnx")
        return onnx.load(f"{folder}/model.onnx")
