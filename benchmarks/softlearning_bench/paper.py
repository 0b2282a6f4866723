"""The numbers that the paper prints, so that ours can stand beside them.

Source: "Soft Learning" (Aledhari, Aledhari, Aledhari, Rahouti), Table 1 and Supplementary Table 2: means over five
folds, accuracy for classes and R2 for numbers, to three decimals; and single numbers of its text and other tables, each
with its place. Nothing here is measured by this project.
"""

from io import StringIO

import pandas as pd

METHODS = (
    "Soft Learning",
    "CatBoost",
    "Tuned MLP",
    "Gradient Boosting",
    "Random Forest",
    "KAN-like",
    "NeuroSym",
    "Basic MLP",
    "Logistic/Ridge",
    "Best-of-3",
)

_RESULTS = """\
A01_iris,0.947,0.953,0.933,0.947,0.953,0.92,0.72,0.627,0.953,0.967
A02_wine,0.978,0.972,0.921,0.961,0.977,0.983,0.904,0.892,0.989,0.978
A03_breast_cancer,0.974,0.967,0.972,0.974,0.965,0.972,0.937,0.951,0.979,0.965
A04_digits,0.986,0.981,0.976,0.972,0.974,0.974,0.959,0.961,0.969,0.978
A07_covtype_proxy,0.929,0.922,0.812,0.924,0.927,0.793,0.927,0.745,0.778,0.234
A08_text_4class,1.0,1.0,0.998,1.0,1.0,1.0,0.996,0.997,0.999,0.878
A09_face_recognition,1.0,1.0,0.995,1.0,1.0,1.0,1.0,0.998,1.0,1.0
B01_clinical,0.911,0.913,0.908,0.906,0.878,0.871,0.886,0.907,0.857,0.887
B02_fraud,0.97,0.975,0.973,0.975,0.971,0.972,0.973,0.972,0.972,0.968
B03_manufacturing,0.795,0.757,0.764,0.742,0.731,0.555,0.718,0.755,0.515,0.708
B04_satellite,0.452,0.626,0.484,0.599,0.569,0.425,0.454,0.499,0.391,0.376
B05_genomic,0.634,0.706,0.44,0.712,0.625,0.478,0.462,0.436,0.422,0.355
B06_noisy_moons,0.931,0.933,0.931,0.931,0.932,0.906,0.929,0.879,0.856,0.925
B07_circles,0.974,0.97,0.971,0.966,0.97,0.975,0.968,0.972,0.478,0.97
B08_hastie,0.978,0.942,0.958,0.915,0.881,0.965,0.928,0.949,0.49,0.677
B09_xor_manifold,0.815,0.806,0.813,0.793,0.809,0.739,0.811,0.824,0.509,0.772
B10_overlap_8class,1.0,1.0,0.999,1.0,1.0,1.0,0.999,0.998,1.0,1.0
B11_mixed_features,0.819,0.844,0.836,0.829,0.82,0.779,0.824,0.837,0.78,0.765
B12_sensor_anomaly,0.978,0.999,0.952,0.998,0.999,0.978,0.995,0.946,0.983,0.812
B13_drug_response,0.612,0.726,0.564,0.716,0.696,0.642,0.478,0.478,0.57,0.53
B14_customer_churn,0.906,0.904,0.907,0.902,0.906,0.906,0.901,0.906,0.907,0.899
B15_environmental,0.993,0.997,0.976,0.997,0.997,0.963,0.996,0.961,0.96,0.938
B16_large_5class,0.768,0.711,0.738,0.698,0.682,0.488,0.707,0.724,0.449,0.658
B17_heavy_noise,0.821,0.804,0.82,0.792,0.809,0.778,0.795,0.817,0.764,0.793
B18_tiny_100,0.87,0.87,0.8,0.87,0.89,0.73,0.77,0.52,0.81,0.87
A05_diabetes_reg,0.49,0.38,0.462,0.357,0.416,0.495,0.147,0.196,0.487,0.362
A06_california,0.967,0.966,0.966,0.965,0.964,0.922,0.965,0.965,0.722,0.915
C01_friedman1,0.954,0.953,0.946,0.941,0.896,0.886,0.941,0.947,0.721,0.776
C02_friedman2,0.982,0.981,0.982,0.98,0.98,0.851,0.966,0.971,0.852,0.969
C03_friedman3,0.241,0.221,0.228,0.187,0.186,0.215,0.167,0.225,0.156,0.071
C04_sparse_regression,0.947,0.983,0.956,0.927,0.695,0.994,0.985,0.986,0.998,0.178
C05_energy,0.984,0.977,0.981,0.974,0.977,0.98,0.965,0.979,0.984,0.809
C06_materials,0.998,0.886,0.809,0.886,0.74,0.955,0.549,0.639,0.998,0.224
C07_large_regression,0.997,0.993,0.999,0.959,0.765,0.999,0.999,0.999,1.0,0.658
C08_noisy_regression,0.324,0.312,0.289,0.279,0.295,0.301,0.222,0.302,-0.001,0.025
C09_house_price,0.248,0.211,0.235,0.18,0.204,0.245,0.208,0.171,0.247,0.065
C10_tiny_regression,0.999,0.836,0.987,0.835,0.837,0.864,0.663,0.556,0.998,0.626
"""

RANKS = (3.12, 3.82, 4.65, 5.26, 5.15, 5.64, 6.81, 6.31, 6.31, 7.93)  # Methods, in the order of METHODS
RECORDS_1 = {
    "CatBoost": (16, 14, 7),
    "Tuned MLP": (20, 14, 3),
    "Gradient Boosting": (20, 12, 5),
    "Random Forest": (19, 13, 5),
    "KAN-like": (22, 12, 3),
}  # Table 1, last line: wins, ties, losses of Soft Learning
RECORDS_3 = {
    "CatBoost": (22, 4, 11),
    "Tuned MLP": (22, 3, 12),
    "Gradient Boosting": (23, 3, 11),
    "Random Forest": (23, 4, 10),
    "KAN-like": (24, 2, 11),
    "Basic MLP": (30, 1, 6),
    "Logistic/Ridge": (25, 4, 8),
    "NeuroSym": (29, 1, 7),
    "Best-of-3": (32, 2, 3),
}  # Supplementary Table 3
TWO_SIDED = {
    "CatBoost": 0.064,
    "Tuned MLP": 0.003,
    "Gradient Boosting": 0.002,
    "Random Forest": 0.004,
    "KAN-like": 0.001,
    "Logistic/Ridge": 0.005,
}  # Supplementary Table 3; the others have "< 0.001"
ONE_SIDED = {"CatBoost": 0.064, "Tuned MLP": 0.0001, "Gradient Boosting": 0.005, "Random Forest": 0.002}  # Methods
NEMENYI = ("KAN-like", "NeuroSym", "Basic MLP", "Logistic/Ridge", "Best-of-3")  # Methods: significantly worse
TABLE_4 = {
    "Soft Learning": (0.882, 0.761, 1.642, 3.11, 12),
    "CatBoost": (0.891, 0.725, 1.616, 3.74, 5),
    "Tuned MLP": (0.858, 0.737, 1.594, 4.64, 0),
    "Gradient Boosting": (0.885, 0.706, 1.591, 5.27, 1),
    "Random Forest": (0.878, 0.663, 1.541, 5.22, 1),
    "KAN-like": (0.832, 0.726, 1.558, 5.65, 2),
    "Basic MLP": (0.822, 0.661, 1.483, 6.31, 1),
    "Logistic/Ridge": (0.775, 0.680, 1.455, 6.35, 4),
    "NeuroSym": (0.841, 0.648, 1.489, 6.77, 0),
    "Best-of-3": (0.796, 0.473, 1.269, 7.95, 1),
}  # Supplementary Table 4: mean accuracy, mean R2, their sum, mean rank, first places
SECONDS = {
    "Logistic/Ridge": (2, 5),
    "Random Forest": (5, 15),
    "Gradient Boosting": (10, 30),
    "CatBoost": (15, 60),
    "Basic MLP": (10, 30),
    "Tuned MLP": (30, 200),
    "Soft Learning": (60, 300),
}  # Supplementary Table 5: per dataset, one core
SLOWEST = (120, 600)  # there, a deep network of four layers, "estimated"
SPEEDUPS = {
    "Logistic/Ridge": ((2, 5), (40, 100)),
    "knn_5": ((1, 3), (60, 200)),
    "decision_tree": ((1, 4), (50, 100)),
    "Random Forest": ((5, 15), (15, 40)),
    "Gradient Boosting": ((10, 30), (7, 20)),
    "CatBoost": ((15, 60), (3, 13)),
    "svm_rbf": ((5, 40), (5, 40)),
    "Basic MLP": ((10, 30), (7, 20)),
}  # there: seconds, and how many times faster than the Tuned MLP
ALONE = (10, 120)  # Methods: seconds per dataset of CatBoost or the Tuned MLP alone
OPERATIONS = {
    (500, 30): (1.3e10, 8.2e7),
    (2_000, 100): (5.2e10, 4.1e8),
    (10_000, 100): (2.6e11, 6.0e8),
    (5_000, 200): (1.3e11, 1.8e9),
}  # Supplementary Proof 2, by rows and columns: of the deep network, of Soft Learning
SHADED = (
    *("A01", "A03", "A04", "A07", "A08", "A09", "B01", "B02", "B03", "B06", "B07", "B08", "B10", "B14", "B15"),
    *("B16", "B17", "B18", "A05", "A06", "C01", "C02", "C03", "C05", "C06", "C07", "C08", "C09", "C10"),
)  # Table 1: rows in which Soft Learning is "rank 1 or tied 1"
BOLD = (
    *("A04", "A07", "A08", "A09", "B01", "B03", "B08", "B10", "B16", "B17"),
    *("A06", "C01", "C02", "C03", "C05", "C06", "C08", "C09", "C10"),
)  # Table 1: rows in which Soft Learning is printed bold, as the best
FIRST_BY_SIZE: dict[str, tuple[int, ...]] = {
    "Table 2": (57, 67, 89),
    "Figure 3c": (29, 38, 56),
}  # per cent of small, medium, large datasets
CRITICAL, BOUNDARY = 2.23, 5.34  # Figure 2c: Nemenyi's distance, and Soft Learning's mean rank plus it
FIGURE_1 = {"CatBoost": 22, "Best-of-3": 29, "Basic MLP": 32, "NeuroSym": 29}  # Supplementary Figure 1: wins by > .001
STACKS = (
    {"Python": "3.12", "scikit-learn": "1.8", "NumPy": "2.4", "SciPy": "1.17", "CatBoost": "1.2"},
    {"Python": "3.11", "scikit-learn": "1.8", "NumPy": "1.26", "SciPy": "1.12", "CatBoost": "1.2"},
)  # Methods: evaluation protocol, and software
IRIS = {"Soft Learning": 0.957, "Basic MLP": 0.652}  # Supplementary Proof 5
THEORY = (
    *("logistic", "knn_5", "decision_tree", "random_forest"),
    *("hist_gradient_boosting", "svm_rbf", "mlp_small", "naive_bayes"),
)  # the specialists in the table of the theory, by our names


def printed_decimals() -> int:
    """The most decimals that a printed result has."""
    cells = (cell for line in _RESULTS.split() for cell in line.split(",")[1:])
    return max(len(cell.partition(".")[2]) for cell in cells)


def paper_results() -> pd.DataFrame:
    """The printed table: 37 datasets (rows, in the paper's order) by 10 methods (columns)."""
    return pd.read_csv(StringIO(_RESULTS), names=["dataset", *METHODS], index_col="dataset")
