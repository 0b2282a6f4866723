"""Where teams work: a model as a card, as an ONNX graph, as a run of MLflow, as a nuisance estimator of causal methods.

card       one page of Markdown
onnx       a graph that other languages run (extra [onnx])
tracking   a run of MLflow: settings, scores, leaderboard, page and model (extra [mlflow])
causal     out-of-fold predictions for DoubleML, and estimators for EconML
"""
