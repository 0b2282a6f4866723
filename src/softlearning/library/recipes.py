"""How each specialist is made from the shape of its training rows: one small function a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn import ensemble, linear_model
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from softlearning.library.boosting import LogTarget, StoppedLightGBMClassifier, StoppedLightGBMRegressor
from softlearning.library.deep import SharedNetworksClassifier, SharedNetworksRegressor
from softlearning.library.learners import CapCategories, CodesToFrame, PlattSVC, ScaledTarget
from softlearning.library.networks import CommitteeClassifier, CommitteeRegressor
from softlearning.library.specialist import Shape
from softlearning.library.stackers import LogisticStack, LogPool, SignedStack

MANY_CLASSES = 20
SMALL = 2_000  # rows up to which the paper grows 100 trees, and above which 200


def for_task(shape: Shape, classifier, regressor):
    """The class for the task: most learners come in two forms with the same parameters."""
    return classifier if shape.task == "classification" else regressor


def logistic(shape: Shape, C: float = 1.0, max_iter: int = 1000):
    return linear_model.LogisticRegression(C=C, max_iter=max_iter, tol=1e-4)


def ridge(shape: Shape, alpha: float = 1.0):
    return linear_model.Ridge(alpha=alpha)


def lasso(shape: Shape):
    return linear_model.Lasso()


def elastic_net(shape: Shape):
    return linear_model.ElasticNet()


def knn(shape: Shape, k: int):
    search = "brute" if shape.columns > 5 else "auto"  # same neighbours; faster than a tree search from there on
    kind = for_task(shape, KNeighborsClassifier, KNeighborsRegressor)
    return kind(min(k, shape.rows), weights="distance", algorithm=search)


def decision_tree(shape: Shape):
    return for_task(shape, DecisionTreeClassifier, DecisionTreeRegressor)(max_depth=10, min_samples_leaf=5)


def random_forest(shape: Shape):
    return forest(shape, for_task(shape, ensemble.RandomForestClassifier, ensemble.RandomForestRegressor))


def extra_trees(shape: Shape):
    return forest(shape, for_task(shape, ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor))


def forest(shape: Shape, kind):
    return kind(100 if shape.rows <= SMALL else 200, max_features="sqrt", max_leaf_nodes=leaves(shape))


def leaves(shape: Shape, most: int | None = None) -> int | None:
    """Leaves of a tree at most: each holds a number per class, so that with many classes forests outgrow memory."""
    few = 150_000 // max(shape.outputs, 1)  # of 200 trees about half a gigabyte
    return most if shape.outputs <= 20 and (most or 0) <= few else max(few, 200)


def bins(shape: Shape, few: int) -> int:
    """Of a histogram: 255, but few where columns times classes are many.

    500 columns and 10 classes then take two fifths of the time.
    """
    return 255 if shape.columns * shape.classes <= 2_500 else few


def hist_gradient_boosting(shape: Shape):
    kind = for_task(shape, ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor)
    boosting = kind(
        max_iter=100 if shape.rows <= SMALL else 200,
        max_depth=6,
        learning_rate=0.1,
        max_bins=bins(shape, few=32),
        early_stopping=False,
        categorical_features=list(shape.categorical) or None,
    )
    return make_pipeline(CapCategories(shape.categorical), boosting) if shape.categorical else boosting


def column_share(shape: Shape, most: float = 1.0) -> float:
    """How many of the columns boosting looks at: fewer where columns times classes are many, but at least 64."""
    return min(most, max(500 / max(shape.columns * shape.classes, 1), 64 / max(shape.columns, 1)))


def catboost(shape: Shape):
    """The paper leaves bins and column sampling open: they follow the number of columns times classes.

    Of 4,096 pixels and 40 faces, 64 columns a split are as accurate as 410 and take a fifth of the time.
    """
    load = shape.columns * shape.classes
    settings: dict[str, Any] = {"border_count": 32 if load > 200 else None}
    if load > 500:
        settings["rsm"] = column_share(shape)
    return ordered_boosting(shape, 300, depth=6, learning_rate=0.1, **settings)


def ordered_boosting(shape: Shape, rounds: int, **settings):
    """CatBoost on native categories, on one thread and without files of its own."""
    boosting = for_task(shape, CatBoostClassifier, CatBoostRegressor)(
        iterations=rounds,
        cat_features=list(shape.categorical) or None,
        random_state=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **settings,
    )
    return make_pipeline(CodesToFrame(shape.categorical), boosting) if shape.categorical else boosting


def adaboost(shape: Shape):
    return for_task(shape, ensemble.AdaBoostClassifier, ensemble.AdaBoostRegressor)()


def svm_rbf(shape: Shape, cv: int = 5):
    return PlattSVC(C=1.0, gamma="scale", cv=cv)


def svr_rbf(shape: Shape):
    return SVR(C=1.0, gamma="scale", cache_size=500)


def mlp(shape: Shape, layers: tuple[int, ...], batch: int, epochs: int):
    """Early stopping wants 15 % of the rows, with each class among them; without that it trains to the end."""
    held_out = 0.15 * shape.rows
    enough = held_out >= max(2, shape.classes) and (shape.classes == 1 or shape.rarest >= 2)
    return for_task(shape, MLPClassifier, MLPRegressor)(
        hidden_layer_sizes=layers,
        batch_size=min(batch, shape.rows),
        max_iter=epochs,
        learning_rate_init=1e-3,
        early_stopping=enough,
        n_iter_no_change=10,
        validation_fraction=0.15,
    )


def naive_bayes(shape: Shape):
    return GaussianNB(var_smoothing=1e-9)


def spline(shape: Shape):
    linear = logistic(shape) if shape.task == "classification" else ridge(shape)
    return make_pipeline(SplineTransformer(n_knots=4, degree=3), linear)


# -- rows that the paper does not have --------------------------------------------------------------------------------


def lightgbm(shape: Shape, **settings):
    """LightGBM on native categories, stopped inside its training rows."""
    kind = for_task(shape, StoppedLightGBMClassifier, StoppedLightGBMRegressor)
    share = column_share(shape, most=settings.pop("colsample_bytree", 0.8))
    if shape.outputs > MANY_CLASSES:  # a tree for each class and round
        settings |= {"most": max(20_000 // shape.outputs, 50), "learning_rate": 0.1, "patience": 10}
    return kind(categorical=shape.categorical, colsample_bytree=share, max_bin=bins(shape, few=63), **settings)


def lightgbm_pairs(shape: Shape):
    """LightGBM on pairs of columns, crosses of categories and target means; of a skewed target the logarithm."""
    boosting = lightgbm(shape, learning_rate=0.04, num_leaves=24, colsample_bytree=0.4, reg_lambda=3.0, reg_alpha=0.5)
    return boosting if shape.task == "classification" else LogTarget(boosting)


def lightgbm_extra(shape: Shape):
    """Random thresholds and small leaves: slower to learn, and different."""
    settings = {"learning_rate": 0.03, "num_leaves": 64, "min_child_samples": 5, "colsample_bytree": 0.5}
    return lightgbm(shape, extra_trees=True, reg_alpha=0.3, patience=100, **settings)


def catboost_own(shape: Shape):
    """CatBoost at its own learning rate, which follows the rounds, on half of the columns a split.

    Half of its usual rounds and categories counted one by one, not in crosses, which other rows have, cost a fraction
    of the time; on the tables that defaults are chosen on the blend loses nothing by it on average, some on a few.
    """
    return sparing_boosting(shape, 500, share=0.5, max_ctr_complexity=1)


def catboost_long(shape: Shape):
    """Many slow rounds on every column."""
    return sparing_boosting(shape, 2000, share=1.0)


def sparing_boosting(shape: Shape, rounds: int, share: float, **settings):
    """CatBoost with half of its borders or fewer; of many columns times classes a split looks at few."""
    many = shape.columns * shape.classes > 500
    return ordered_boosting(shape, rounds, rsm=column_share(shape, share), border_count=64 if many else 128, **settings)


def wide_trees(shape: Shape, trees: int = 200):
    """Extra trees with bounded leaves; a regression looks at every column."""
    kind = for_task(shape, ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor)
    columns = "sqrt" if shape.task == "classification" else 1.0
    leaf = 1 if shape.rows <= 5_000 else 2
    return kind(trees, max_features=columns, min_samples_leaf=leaf, max_leaf_nodes=leaves(shape, 15_000))


def network(shape: Shape):
    """Four small networks; the more rows, the fewer passes."""
    settings: dict[str, Any] = {
        "epochs": int(np.clip(400_000 / max(shape.rows, 1), 20, 120)),
        "batch": int(np.clip(shape.rows / 16, 16, 256)),
    }
    if shape.task == "classification":
        return CommitteeClassifier(**settings)
    return ScaledTarget(CommitteeRegressor(**settings))


def shared_networks(shape: Shape):
    """Eight networks that share their layers; of PyTorch, which must be installed (the extra "torch")."""
    epochs = int(np.clip(600_000 / max(shape.rows, 1), 30, 200))
    settings: dict[str, Any] = {"epochs": epochs, "batch": 128 if shape.rows <= 6_000 else 256}
    if shape.task == "classification":
        return SharedNetworksClassifier(**settings)
    return ScaledTarget(SharedNetworksRegressor(**settings))


def light_trees(shape: Shape, columns: float, **settings):
    """Coarse bins and a part of rows and columns for each tree: cheaper than all of them, and no worse."""
    return for_task(shape, LGBMClassifier, LGBMRegressor)(
        max_bin=63,
        colsample_bytree=column_share(shape, most=columns),
        subsample=0.8,
        subsample_freq=1,
        random_state=0,
        n_jobs=1,
        verbose=-1,
        **settings,
    )


def svm(shape: Shape):
    """As the paper's, with fewer inner folds above its limit of rows."""
    return svm_rbf(shape, cv=5 if shape.rows <= SMALL else 3)


def scaled_target(shape: Shape, make, **options):
    """A learner of numbers whose loss knows a unit, fitted on the standardised target."""
    return ScaledTarget(make(shape, **options))


def few_columns(shape: Shape, most: int) -> list:
    """Steps that leave at most `most` columns: none, or principal components."""
    return [] if shape.columns <= most else [PCA(min(most, shape.rows), random_state=0)]


def qda(shape: Shape):
    """One Gaussian a class, each covariance shrunk as far as its rows demand (Ledoit and Wolf).

    A class of very few rows has no covariance worth the name: then naive Bayes, with variances alone.
    """
    if shape.rarest < 5:
        return naive_bayes(shape)
    gaussians = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto", tol=1e-10)  # a still column is no error
    return make_pipeline(*few_columns(shape, 100), gaussians)


def penalised(shape: Shape, C: float, max_iter: int = 1000):
    """Logistic regression, or ridge with its penalty chosen by leave-one-out."""
    if shape.task == "classification":
        return logistic(shape, C, max_iter)
    return linear_model.RidgeCV(np.logspace(-3, 4, 15))


def nystroem(shape: Shape):
    """A kernel machine whose time grows with the rows and not with their square."""
    features = Nystroem(n_components=min(300 if shape.rows <= SMALL else 500, shape.rows), random_state=0)
    return make_pipeline(features, penalised(shape, C=10.0))


def quadratic(shape: Shape):
    """Squares and products of the columns.

    With many rows and classes the search ends early: on covertype the optimum takes as long as all other specialists
    together, and the blend is none the better for it.
    """
    squares = PolynomialFeatures(2, include_bias=False)
    linear = penalised(shape, C=0.1, max_iter=1000 if shape.rows * shape.classes <= 70_000 else 200)
    products = make_pipeline(*few_columns(shape, 40), squares, linear)
    return products if shape.task == "classification" else ScaledTarget(products)


def ridge_cv(shape: Shape):
    return penalised(shape, C=1.0)


def lasso_cv(shape: Shape):
    return linear_model.LassoCV(alphas=50, cv=max(2, min(5, shape.rows)))


def elastic_net_cv(shape: Shape):
    return linear_model.ElasticNetCV(l1_ratio=0.5, alphas=50, cv=max(2, min(5, shape.rows)))


def gaussian_process(shape: Shape):
    kernel = ConstantKernel() * RBF(shape.columns**0.5) + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


def log_pool(shape: Shape):
    return LogPool(shape.outputs)


def logistic_stack(shape: Shape):
    return LogisticStack(shape.outputs)


def nonnegative_stack(shape: Shape):
    """Least squares with coefficients >= 0 and a constant: unlike weights they may undo what penalties shrank."""
    return linear_model.LinearRegression(positive=True)


def signed_stack(shape: Shape):
    return SignedStack()


def tree_stack(shape: Shape):
    """Few shallow trees on the table and the predictions: whom to trust may depend on where a row lies."""
    return light_trees(shape, 0.5, n_estimators=100, num_leaves=8, learning_rate=0.05, reg_lambda=1.0)


def dummy(shape: Shape):
    """The class shares, or the mean: the floor that a fit can always stand on."""
    return DummyClassifier(strategy="prior") if shape.task == "classification" else DummyRegressor()
