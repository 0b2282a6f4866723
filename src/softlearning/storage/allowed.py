"""Exactly what a model file may name. The list lives here, never in a file.

A class is here when a fitted object of it holds plain numbers that Python code reads, or when `guards` checks what its
compiled code would read without looking. Estimators that this package defines in `softlearning.library` need no entry.
Everything else needs `load(path, trusted=[...])`, name by name.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from sklearn.base import BaseEstimator

import softlearning.library


def _table(text: str) -> set[str]:
    """Full names: a module, then the names in it; a line that begins with blanks goes on with the line above."""
    lines = text.replace("\n  ", " ").split("\n")
    return {f"{module}.{name}" for module, *names in map(str.split, filter(None, lines)) for name in names}


def class_of(name: str) -> type:
    """The class of an allowed name: the modules of the list are the only ones ever imported here."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


SCALARS = _table(
    "numpy bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str_ bytes_ "
    "datetime64 timedelta64"
)
KEYS = SCALARS | _table("builtins str int float bool")
FUNCTIONS = _table("""
numpy absolute exp expm1 log log10 log1p log2 sqrt square
scipy._lib.array_api_compat.numpy._aliases asarray
sklearn.utils.validation check_array
""")
LOSSES = _table("""
sklearn._loss._loss CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss
  CyHalfPoissonLoss CyHalfSquaredError CyHuberLoss CyPinballLoss
sklearn.linear_model._sgd_fast Hinge ModifiedHuber SquaredHinge
""")
HELPERS = _table("""
softlearning.storage.records Stored
catboost.core CatBoostClassifier CatBoostRegressor
lightgbm.basic Booster
lightgbm.sklearn LGBMClassifier LGBMRegressor
scipy.interpolate._bsplines BSpline
sklearn._loss.link HalfLogitLink IdentityLink Interval LogitLink LogLink MultinomialLogit
sklearn._loss.loss AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss
  HalfSquaredError HuberLoss PinballLoss
sklearn.calibration _CalibratedClassifier _SigmoidCalibration _TemperatureScaling
sklearn.ensemble._hist_gradient_boosting.binning _BinMapper
sklearn.ensemble._hist_gradient_boosting.predictor TreePredictor
sklearn.gaussian_process._gpc _BinaryGaussianProcessClassifierLaplace
sklearn.metrics._dist_metrics EuclideanDistance64 ManhattanDistance64
sklearn.multiclass _ConstantPredictor
""")
ESTIMATORS = _table("""
sklearn.calibration CalibratedClassifierCV
sklearn.compose ColumnTransformer TransformedTargetRegressor
sklearn.cross_decomposition PLSRegression
sklearn.decomposition PCA TruncatedSVD
sklearn.discriminant_analysis LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis
sklearn.dummy DummyClassifier DummyRegressor
sklearn.ensemble AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor ExtraTreesClassifier
  ExtraTreesRegressor GradientBoostingClassifier GradientBoostingRegressor HistGradientBoostingClassifier
  HistGradientBoostingRegressor RandomForestClassifier RandomForestRegressor StackingClassifier StackingRegressor
  VotingClassifier VotingRegressor
sklearn.feature_extraction.text CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer
sklearn.feature_selection VarianceThreshold
sklearn.gaussian_process GaussianProcessClassifier GaussianProcessRegressor
sklearn.gaussian_process.kernels ConstantKernel DotProduct Exponentiation ExpSineSquared Matern Product RBF
  RationalQuadratic Sum WhiteKernel
sklearn.impute MissingIndicator SimpleImputer
sklearn.isotonic IsotonicRegression
sklearn.kernel_approximation Nystroem RBFSampler
sklearn.kernel_ridge KernelRidge
sklearn.linear_model ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lasso LassoCV
  LinearRegression LogisticRegression LogisticRegressionCV PoissonRegressor QuantileRegressor Ridge RidgeClassifier
  RidgeClassifierCV RidgeCV SGDClassifier SGDRegressor TweedieRegressor
sklearn.multiclass OneVsOneClassifier OneVsRestClassifier
sklearn.naive_bayes BernoulliNB ComplementNB GaussianNB MultinomialNB
sklearn.neighbors BallTree KDTree KNeighborsClassifier KNeighborsRegressor
sklearn.neural_network MLPClassifier MLPRegressor
sklearn.pipeline FeatureUnion Pipeline
sklearn.preprocessing FunctionTransformer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder
  OrdinalEncoder PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler SplineTransformer StandardScaler
sklearn.svm LinearSVC LinearSVR NuSVC NuSVR SVC SVR
sklearn.tree DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor
""")
OBJECTS = HELPERS | {f"{found.__module__}.{found.__qualname__}" for found in map(class_of, ESTIMATORS)}

NAMES: dict[str, set[str]] = {
    "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
    "DefaultDictNode": {"collections.defaultdict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "BytesNode": {"builtins.bytes"},
    "JsonNode": {"builtins.str"},
    "DTypeNode": {"numpy.dtype"},
    "PartialNode": {"functools.partial"},
    "TreeNode": {"sklearn.tree._tree.Tree"},
    "NdArrayNode": {"numpy.ndarray", *SCALARS},
    "SparseMatrixNode": {f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("matrix", "array")},
    "TypeNode": {*KEYS, "collections.OrderedDict"},
    "FunctionNode": FUNCTIONS,
    "LossNode": LOSSES,
    "ObjectNode": OBJECTS,
}

# A model predicts; what only training needs (random generators, optimizers) stays out of the file.
FORGOTTEN = _table("""
numpy.random.mtrand RandomState
numpy.random._generator Generator
sklearn.neural_network._stochastic_optimizers AdamOptimizer SGDOptimizer
""")

OWN_MODULES = {f"{softlearning.library.__name__}.{m.name}" for m in iter_modules(softlearning.library.__path__)}


def is_allowed(loader: str, name: str) -> bool:
    """Whether a file may name this class or function for this kind of node."""
    return name in NAMES[loader] or (loader == "ObjectNode" and is_own_estimator(name))


def is_own_estimator(name: str) -> bool:
    """Whether a name is of an estimator class that a module of `softlearning.library` itself defines."""
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute, None) if module in OWN_MODULES else None
    return isinstance(found, type) and issubclass(found, BaseEstimator) and found.__module__ == module
