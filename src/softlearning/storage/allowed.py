"""Exactly what a model file may name. The list lives here, never in a file, and nothing is matched by prefix.

A class is here when a fitted object of it holds plain numbers that Python code reads, or when `guards` checks what its
compiled code would read without looking. Everything else needs `load(path, trusted=[...])`, name by name.
"""

from __future__ import annotations

CONTAINERS = {
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
}

SCALARS = {
    f"numpy.{name}"
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "str_", "bytes_", "datetime64", "timedelta64"),
    )
}
SPARSE = {f"scipy.sparse._{form}.{form}_{kind}" for form in ("csr", "csc") for kind in ("matrix", "array")}
KEYS = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *SCALARS}
TYPES = {*KEYS, "collections.OrderedDict"}

FUNCTIONS = {
    "numpy.absolute",
    "numpy.exp",
    "numpy.expm1",
    "numpy.log",
    "numpy.log10",
    "numpy.log1p",
    "numpy.log2",
    "numpy.sqrt",
    "numpy.square",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "sklearn.utils.validation.check_array",
}

LOSSES = {
    f"sklearn._loss._loss.Cy{name}"
    for name in (
        "AbsoluteError",
        "ExponentialLoss",
        "HalfBinomialLoss",
        "HalfGammaLoss",
        "HalfMultinomialLoss",
        "HalfPoissonLoss",
        "HalfSquaredError",
        "HuberLoss",
        "PinballLoss",
    )
} | {f"sklearn.linear_model._sgd_fast.{name}" for name in ("Hinge", "ModifiedHuber", "SquaredHinge")}


def _of(module: str, names: str) -> set[str]:
    return {f"{module}.{name}" for name in names.split()}


OBJECTS = (
    _of("softlearning.library.learners", "CapCategories CodesToFrame PlattSVC ScaledTarget")
    | _of("softlearning.library.stackers", "LogPool LogisticStack SignedStack")
    | _of("catboost.core", "CatBoostClassifier CatBoostRegressor")
    | _of("lightgbm.sklearn", "LGBMClassifier LGBMRegressor")
    | _of("lightgbm.basic", "Booster")
    | _of("scipy.interpolate._bsplines", "BSpline")
    | _of("sklearn._loss.link", "HalfLogitLink IdentityLink Interval LogitLink LogLink MultinomialLogit")
    | _of("sklearn._loss.loss", "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss")
    | _of("sklearn._loss.loss", "HalfPoissonLoss HalfSquaredError HuberLoss PinballLoss")
    | _of("sklearn.calibration", "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling")
    | _of("sklearn.compose._column_transformer", "ColumnTransformer")
    | _of("sklearn.compose._target", "TransformedTargetRegressor")
    | _of("sklearn.cross_decomposition._pls", "PLSRegression")
    | _of("sklearn.decomposition._pca", "PCA")
    | _of("sklearn.decomposition._truncated_svd", "TruncatedSVD")
    | _of("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis")
    | _of("sklearn.dummy", "DummyClassifier DummyRegressor")
    | _of("sklearn.ensemble._bagging", "BaggingClassifier BaggingRegressor")
    | _of("sklearn.ensemble._forest", "ExtraTreesClassifier ExtraTreesRegressor")
    | _of("sklearn.ensemble._forest", "RandomForestClassifier RandomForestRegressor")
    | _of("sklearn.ensemble._gb", "GradientBoostingClassifier GradientBoostingRegressor")
    | _of("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper")
    | _of("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "HistGradientBoostingClassifier")
    | _of("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "HistGradientBoostingRegressor")
    | _of("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor")
    | _of("sklearn.ensemble._stacking", "StackingClassifier StackingRegressor")
    | _of("sklearn.ensemble._voting", "VotingClassifier VotingRegressor")
    | _of("sklearn.ensemble._weight_boosting", "AdaBoostClassifier AdaBoostRegressor")
    | _of("sklearn.feature_selection._variance_threshold", "VarianceThreshold")
    | _of("sklearn.gaussian_process._gpc", "GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace")
    | _of("sklearn.gaussian_process._gpr", "GaussianProcessRegressor")
    | _of("sklearn.gaussian_process.kernels", "ConstantKernel DotProduct Exponentiation ExpSineSquared Matern Product")
    | _of("sklearn.gaussian_process.kernels", "RBF RationalQuadratic Sum WhiteKernel")
    | _of("sklearn.impute._base", "MissingIndicator SimpleImputer")
    | _of("sklearn.isotonic", "IsotonicRegression")
    | _of("sklearn.kernel_approximation", "Nystroem RBFSampler")
    | _of("sklearn.kernel_ridge", "KernelRidge")
    | _of("sklearn.linear_model._base", "LinearRegression")
    | _of("sklearn.linear_model._bayes", "ARDRegression BayesianRidge")
    | _of("sklearn.linear_model._coordinate_descent", "ElasticNet ElasticNetCV Lasso LassoCV")
    | _of("sklearn.linear_model._glm.glm", "GammaRegressor PoissonRegressor TweedieRegressor")
    | _of("sklearn.linear_model._huber", "HuberRegressor")
    | _of("sklearn.linear_model._logistic", "LogisticRegression LogisticRegressionCV")
    | _of("sklearn.linear_model._quantile", "QuantileRegressor")
    | _of("sklearn.linear_model._ridge", "Ridge RidgeCV RidgeClassifier RidgeClassifierCV")
    | _of("sklearn.linear_model._stochastic_gradient", "SGDClassifier SGDRegressor")
    | _of("sklearn.metrics._dist_metrics", "EuclideanDistance64 ManhattanDistance64")
    | _of("sklearn.multiclass", "OneVsOneClassifier OneVsRestClassifier _ConstantPredictor")
    | _of("sklearn.naive_bayes", "BernoulliNB ComplementNB GaussianNB MultinomialNB")
    | _of("sklearn.neighbors._ball_tree", "BallTree")
    | _of("sklearn.neighbors._classification", "KNeighborsClassifier")
    | _of("sklearn.neighbors._kd_tree", "KDTree")
    | _of("sklearn.neighbors._regression", "KNeighborsRegressor")
    | _of("sklearn.neural_network._multilayer_perceptron", "MLPClassifier MLPRegressor")
    | _of("sklearn.pipeline", "FeatureUnion Pipeline")
    | _of("sklearn.preprocessing._data", "MaxAbsScaler MinMaxScaler Normalizer PowerTransformer QuantileTransformer")
    | _of("sklearn.preprocessing._data", "RobustScaler StandardScaler")
    | _of("sklearn.preprocessing._encoders", "OneHotEncoder OrdinalEncoder")
    | _of("sklearn.preprocessing._function_transformer", "FunctionTransformer")
    | _of("sklearn.preprocessing._label", "LabelBinarizer LabelEncoder")
    | _of("sklearn.preprocessing._polynomial", "PolynomialFeatures SplineTransformer")
    | _of("sklearn.svm._classes", "LinearSVC LinearSVR NuSVC NuSVR SVC SVR")
    | _of(
        "sklearn.tree._classes", "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor"
    )
)

NAMES: dict[str, set[str]] = {
    **CONTAINERS,
    "NdArrayNode": {"numpy.ndarray", *SCALARS},
    "SparseMatrixNode": SPARSE,
    "TypeNode": TYPES,
    "FunctionNode": FUNCTIONS,
    "LossNode": LOSSES,
    "ObjectNode": OBJECTS,
}

# A model predicts; what only training needs (random generators, optimizers) stays out of the file.
FORGOTTEN = {
    "numpy.random.mtrand.RandomState",
    "numpy.random._generator.Generator",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
}
