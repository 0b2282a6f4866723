"""What both fitted estimators share: what was learned, prediction, saving, another combination."""

from __future__ import annotations

import copyreg
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from softlearning.data.inputs import frame_or_array
from softlearning.data.schema import describe
from softlearning.estimators.learning import Learning
from softlearning.evaluation.aims import aim_of, as_stored, said_held_out, standing
from softlearning.evaluation.explanation import error_slices, interactions, shapley
from softlearning.execution import cores, one_thread
from softlearning.library import as_rows, every_row
from softlearning.method.ensemble import needed, predict_chunks
from softlearning.method.preparation import take
from softlearning.method.slimming import slimming, smallest_that_fits
from softlearning.uncertainty.disagreement import blend, disagreement

AS_A_FILE = "softlearning_file"
OF_A_FIT = ("_skl_callbacks", "_parent_callback_ctx")  # scikit-learn's callbacks belong to a fit, not to a model


class SoftLearning(Learning):
    """What both estimators share; they differ in how they encode y and decode the blend."""

    # -- what was learned ---------------------------------------------------------------------------------------------

    @property
    def family_weights_(self) -> pd.Series:
        """Weight of each algorithmic family, largest first."""
        family = {s.name: s.family for s in self.record_.crossed.library}
        return self.weights_.groupby(family).sum().sort_values(ascending=False).rename_axis("family")

    @property
    def oof_(self) -> np.ndarray:
        """Out-of-fold predictions (n, K, C), as they enter the blend, in the order of `weights_`.

        NaN on rows that no fold held out.
        """
        crossed = self.record_.crossed
        return crossed.pooled[:, crossed.columns(self.weights_.index)]

    @property
    def folds_(self) -> list:
        """The (train, test) rows of each fold."""
        return self.record_.crossed.splits

    @property
    def specialists_(self) -> dict:
        """The fitted specialists that carry weight, by name: one model, or a list of one per fold."""
        members = self.record_.ensemble.members
        models = {name: [m.model for m in members[name]] for name in self.record_.support()}
        return {name: found[0] if len(found) == 1 else found for name, found in models.items()}

    @property
    def temperatures_(self) -> pd.Series:
        """The temperature of each specialist: above 1 it was overconfident, below 1 underconfident."""
        crossed = self.record_.crossed
        values = [1.0 if c is None else c.temperature for c in crossed.calibration]
        return pd.Series(values, index=list(crossed.library.names), name="temperature")

    @property
    def sharpness_(self) -> float:
        """beta >= 1, by which probabilities are sharpened in the blend: softmax(beta log P); 1 for numbers."""
        return self.record_.crossed.sharpness

    @property
    def cv_score_(self) -> pd.Series:
        """metric, score, std_error, low and high (95 %) of the blend on held-out rows; accuracy or R2 without a metric.

        Weights, and the rule that decides on labels, are learnt without each row's fold.
        """
        aim = self._aim() or aim_of("accuracy" if self._task == "classification" else "r2", self._task)
        return standing(self.record_, aim, self._threshold, names=()).scores.iloc[0].drop("candidate")

    @property
    def table_(self) -> str:
        """What was understood of the table, in words."""
        return describe(self.record_.training.schema)

    def _html_repr(self) -> str:
        """In a notebook: score, verdict and weights of a fitted model, then scikit-learn's diagram."""
        diagram = super()._html_repr()
        if not hasattr(self, "record_"):
            return diagram
        said = [f"{self.verdict_[:1].upper()}{self.verdict_[1:]}."]
        if self.record_.crossed.oof is not None:
            held = self.cv_score_
            said.insert(0, f"{held['metric']} {held['score']:.4g} on held-out rows, 95 % interval {held['low']:.4g} to "
                           f"{held['high']:.4g}.")  # fmt: skip
        heavy = self.weights_[self.weights_ > 0].sort_values(ascending=False)
        rows = "".join(f"<tr><td>{escape(str(n))}</td><td>{w:.3f}</td></tr>" for n, w in heavy.items())
        head = "<tr><th>specialist</th><th>weight</th></tr>"
        return f"<div><p>{escape(' '.join(said))}</p><table>{head}{rows}</table></div>{diagram}"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "record_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __reduce_ex__(self, protocol):
        """For pickle and copy: the attributes as they are."""
        return copyreg.__newobj__, (type(self),), super().__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> dict:
        """For skops, which cannot store a fitted model by its attributes: the file that `save` writes."""
        if not hasattr(self, "record_"):
            return super().__getstate__()
        with TemporaryDirectory() as folder:
            self.save(Path(folder, "model"))
            return {AS_A_FILE: Path(folder, "model").read_bytes()}

    def __setstate__(self, state: dict) -> None:
        if AS_A_FILE not in state:
            return super().__setstate__(state)
        from softlearning.estimators.loading import load

        with TemporaryDirectory() as folder:
            Path(folder, "model").write_bytes(state[AS_A_FILE])
            found = load(Path(folder, "model"))
        if type(found) is not type(self):
            raise TypeError(f"the file holds a {type(found).__name__}")
        self.__dict__.update(vars(found))

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _tensor(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (n, K', C) of the specialists with weight, and these weights."""
        check_is_fitted(self)
        return self._chunkwise(self.record_.support(), X, lambda P: (P,))[0], self.record_.support_weights()

    def _chunkwise(self, names: list[str], X, told) -> tuple[np.ndarray, ...]:
        """What `told` makes of predictions (rows, K', C) of the named, for all rows of X, some of them at a time."""
        check_is_fitted(self)
        ensemble, table = self.record_.ensemble, self._validate(X)
        if not table.shape[0]:
            return told(np.empty((0, len(names), ensemble.classes)))
        with one_thread:
            parts = [told(P) for _, P in predict_chunks(ensemble, names, table, cores(self.n_jobs))]
        return parts[0] if len(parts) == 1 else tuple(np.concatenate(arrays) for arrays in zip(*parts))

    def _blend(self, X) -> np.ndarray:
        """The blend (n, C)."""
        check_is_fitted(self)
        weights = self.record_.support_weights()
        return self._chunkwise(self.record_.support(), X, lambda P: (blend(P, weights),))[0]

    def _with_disagreement(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The blend (n, C), and how far the specialists behind it, also through a stacker, lie from it (n,)."""
        check_is_fitted(self)
        weights = self.record_.solution.weights
        handed = self.record_.handed_down(weights)
        used = (weights > 0) | (handed > 0)
        names = [name for name, use in zip(self.record_.crossed.library.names, used) if use]

        def told(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            f = blend(P, weights[used])
            return f, disagreement(P, handed[used], around=f)

        f, V = self._chunkwise(names, X, told)
        return f, V

    def specialist_table(self, X):
        """X as the specialists' views read it: checked cell by cell, columns in the order of the training table."""
        check_is_fitted(self)
        return self._validate(X)

    def specialist_predictions(self, X) -> np.ndarray:
        """Predictions (n, K', C) of the specialists with weight, in the order of `specialists_`."""
        return self._tensor(X)[0]

    def contributions_by_specialist(self, X) -> np.ndarray:
        """alpha_k f_k(x), of shape (n, K', C): what each specialist adds; they sum to the prediction.

        In the order of `specialists_`. What each *column* adds is told by `explain`.
        """
        P, alpha = self._tensor(X)
        return P * alpha[:, None]

    contributions = contributions_by_specialist  # its earlier name

    def explain(self, X, background=None, *, label=None, rows=32, walks=2, return_error=False):
        """What each column contributes to each row's prediction: a frame whose rows add up to the prediction.

        Shapley values of the blend where absent columns take their values from background rows; sampled, but exact
        where there are few columns or where the model is additive.

        Parameters
        ----------
        X : rows to explain.
        background : rows to compare with, whose mean prediction is the base value; X itself unless given.
        label : the class whose probability is explained; the second of two unless told, and of more classes the most
            probable one of each row.
        rows : how many background rows are used, drawn at random.
        walks : how often each of them is walked from; more cost more and have a smaller error.
        return_error : also return a frame of the standard errors of sampling orders of the columns; the background rows
            are taken as they are.

        Returns
        -------
        A frame with "(base value)" and one column for each input column, by its own name. Columns that the model does
        not read, such as identifiers, contribute 0 and are left out.
        """
        table, names, places = self._explained(X)
        known = _drawn(table if background is None else self._explained(background)[0], rows)
        parts = [
            (index, shapley(f, take(table, index), known, columns=places, walks=walks))
            for index, f in self._outputs_to_explain(table, label)
        ]
        frames = [_joined(parts, places, names, getattr(X, "index", None), field) for field in ("values", "error")]
        return tuple(frames) if return_error else frames[0]

    def interactions(self, X, background=None, *, label=None, rows=32, strongest=5) -> pd.DataFrame:
        """Which columns work together: for pairs of the strongest columns, how far their effect is more than the sum.

        Parameters
        ----------
        X, background : rows that the model has not seen, and rows to compare with; X itself unless given.
        label : the class whose probability is looked at; the second of two unless told.
        rows : how many rows of each are used, drawn at random.
        strongest : how many columns, and so pairs of them.

        Returns
        -------
        A frame with column, with, strength (a standard deviation over rows, in units of the prediction; zero where the
        blend is additive in the two), std_error (of drawing these rows) and share (of what the two do together).
        """
        table, names, places = self._explained(X)
        known = _drawn(table if background is None else self._explained(background)[0], rows)
        if label is None and self._task == "classification" and len(self.classes_) > 2:
            raise ValueError(f"label= tells whose probability is meant: {', '.join(map(repr, self.classes_.tolist()))}")
        table = _drawn(table, rows)
        f = self._outputs_to_explain(table, label)[0][1]
        found = interactions(f, table, known, columns=places, strongest=strongest)
        return found.assign(**{role: [names[j] for j in found[role]] for role in ("column", "with")})

    def error_slices(self, X, y, *, groups=None, depth=2, level=0.05) -> pd.DataFrame:
        """In which parts of a table the model is worse than elsewhere beyond noise: slice (in words), rows, loss,
        overall and p (after Holm's rule), worst first.

        The loss is 1 for a wrong label, or the absolute error of a number. X and y are rows that the model has not
        seen, or its training rows, which are then judged by out-of-fold predictions and in the groups of the fit.
        Rows of one of the `groups` (n,) may depend on each other, and count as one.
        """
        table, names, _ = self._explained(X)
        frame = table if hasattr(table, "iloc") else pd.DataFrame(table, columns=names)
        truth = self._encode_again(y)
        record, classes = self.record_, self._task == "classification"
        if table.shape[0] == record.training.rows and np.array_equal(truth, record.training.y):
            known, groups = record.crossed.predicted, record.training.groups if groups is None else groups
            said = said_held_out(record, self._threshold, self._aim()) if classes else record.held_out.blend[:, 0]
        else:
            known, said = np.ones(len(truth), dtype=bool), self._encode_again(self.predict(X))
        loss = (said != truth[known]).astype(float) if classes else np.abs(said - truth[known])
        groups = None if groups is None else np.asarray(groups)[known]
        return error_slices(frame[known].reset_index(drop=True), loss, groups=groups, depth=depth, level=level)

    def _explained(self, X):
        """Rows as a frame or dense array whose columns can be exchanged; their names; places of those that are read."""
        check_is_fitted(self)
        data = X.toarray() if sparse.issparse(X) else frame_or_array(X)
        schema = self.record_.training.schema
        known, read = [c.name for c in schema.columns], {c.name for c in schema.kept}
        if isinstance(data, pd.DataFrame):
            data = data[[c for c in data.columns if not known or str(c) in known]]
            names = [str(c) for c in data.columns]
        else:
            names = known or [f"x{j}" for j in range(data.shape[1])]
        return data, names, [j for j, name in enumerate(names) if not read or name in read]

    def _outputs_to_explain(self, table, label):
        """(rows, function of rows -> one number per row), together all rows."""
        everybody = np.arange(table.shape[0])
        if self._task == "regression":
            return [(everybody, lambda rows: self._blend(rows)[:, 0])]
        if label is None and len(self.classes_) == 2:
            label = self.classes_[1]
        if label is not None:
            if label not in self.classes_:
                raise ValueError(f"label is {label!r}; the classes are {', '.join(map(repr, self.classes_.tolist()))}")
            places = np.full(table.shape[0], np.flatnonzero(self.classes_ == label)[0])
        else:
            places = self._blend(table).argmax(axis=1)

        def of_class(c):
            return lambda rows: self._blend(rows)[:, c]

        return [(np.flatnonzero(places == c), of_class(c)) for c in np.unique(places)]

    def disagreement(self, X) -> np.ndarray:
        """``V(x) = sum of alpha_k |f_k(x) - f(x)|^2``: how far the specialists lie apart on each row.

        The weight of a stacker counts as that of the specialists it reads, in the shares that they earn without it.
        """
        return self._with_disagreement(X)[1]

    # -- to keep and to show ------------------------------------------------------------------------------------------

    def save(self, path, *, keep_oof: bool = True, key: bytes | None = None) -> None:
        """Write the model to one file, without pickle; `softlearning.load` reads it back.

        The file holds what earned weight, and of the data what the model needs to go on: the target, the folds and the
        out-of-fold predictions, and the rows that neighbours and kernel machines keep. Its owner alone may read it.

        Parameters
        ----------
        path : where to; an existing file is replaced in one step, and a failed save leaves it as it was
        keep_oof : False leaves out the out-of-fold predictions, which intervals, sets, the report and `recombine` need
        key : bytes shared with who loads; the file is then signed (HMAC-SHA256)

        Notes
        -----
        Functions and a user's own library cannot be stored: such a parameter is kept as a note and becomes None.
        Random generators and optimizers of the specialists are left out, and `n_jobs` of a specialist becomes 1.
        """
        from softlearning.storage import write_model

        check_is_fitted(self)
        params = self.get_params(deep=False)
        learned = {name: value for name, value in vars(self).items() if name not in (*params, *OF_A_FIT)}
        record = replace(self.record_, rule=as_stored(self.record_.rule))
        learned["record_"] = record if keep_oof else replace(record, crossed=replace(record.crossed, oof=None))  # type: ignore[arg-type]
        about = {
            "input": self.table_,
            "weights": {name: float(w) for name, w in self.weights_.items() if w > 0},
            "certificate": {name: float(self.certificate_[name]) for name in ("objective", "gap")},
        }
        write_model(path, type(self).__name__, params, learned, about=about, key=key)

    def report(self, path, X=None, y=None, *, learning_curve=None) -> None:
        """Write one self-contained HTML page.

        X, y : rows that the model has not seen, for how much each column matters.
        learning_curve : (X, y) that it was fitted on, for whether more rows would help: about 20 seconds of work.
        """
        from softlearning.report import report_model

        check_is_fitted(self)
        report_model(self, path, X=X, y=y, learning_curve=learning_curve)

    # -- another combination of what is already fitted ----------------------------------------------------------------

    def recombine(self, *, rule=None, loss=None, metric=None, X=None, y=None):
        """A new model under another rule, loss or metric; nothing that is fitted is fitted again.

        X and y, the training data, are needed only when a specialist that has no weight now gets some and its models
        were not kept.
        """
        check_is_fitted(self)
        model = clone(self).set_params(rule=rule or self.rule, loss=loss or self.loss, metric=metric or self.metric)
        return self._continued(model, self.record_.library, self.record_.crossed, X, y)

    def drop(self, names, X=None, y=None):
        """A new model without the named specialists, the weights solved over the rest."""
        check_is_fitted(self)
        names = [names] if isinstance(names, str) else list(names)
        library = self.record_.library - names
        rest = self.record_.crossed.without(names)
        if not rest.library:
            raise ValueError("nothing would be left: the model has no other specialist that finished")
        return self._continued(clone(self).set_params(library=library), library, rest, X, y)

    def slimming(self, X) -> pd.DataFrame:
        """What a smaller model would cost: one line per specialist that leaves, with what the rest takes and loses.

        Columns: dropped, specialists (those that then carry weight), risk (held-out), added_risk, row_ms (prediction of
        the first row of X, measured) and megabytes (of the models).
        """
        check_is_fitted(self)
        return slimming(self.record_, self._validate(X))

    def slim(self, X, *, row_ms: float | None = None, megabytes: float | None = None):
        """A new model, pruned to a wanted latency or size at the price that `slimming(X)` tells; nothing is fitted."""
        kept = smallest_that_fits(self.slimming(X), row_ms, megabytes)["specialists"]
        crossed = self.record_.crossed
        library = crossed.library[needed(kept, crossed.library)]
        return self._continued(
            clone(self).set_params(library=library), library, crossed.only(library.names), None, None
        )

    def expand(self, specialists, X, y):
        """A new model with a larger library on the same training data and folds; only the new is fitted."""
        check_is_fitted(self)
        library = self.record_.library + as_rows(specialists, named=every_row(self._task))
        known = self.record_.crossed.without([], stackers=bool(library.level(2)))
        return self._continued(clone(self).set_params(library=library), library, known, X, y)


def _drawn(table, most: int):
    return take(table, np.sort(np.random.default_rng(0).permutation(table.shape[0])[:most]))


def _joined(parts, places, names, index, field) -> pd.DataFrame:
    """One frame of the Shapley values, or their errors, of several sets of rows."""
    total = np.empty((sum(len(rows) for rows, _ in parts), len(places) + 1))
    for rows, found in parts:
        total[rows, 0] = found.base if field == "values" else 0.0
        total[rows, 1:] = getattr(found, field)
    return pd.DataFrame(total, columns=["(base value)", *(names[j] for j in places)], index=index)
