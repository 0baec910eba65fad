"""The stage of Spark ML, beside what its classifier learns in memory."""

import gc

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]
FEATURES = ["a", "b", "x"]


@pytest.fixture(scope="module")
def indexed(frame):
    """Labels and vectors as Spark ML has them."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    label = StringIndexer(inputCol="y", outputCol="label")
    vector = VectorAssembler(inputCols=["b", "x"], outputCol="features")
    return Pipeline(stages=[label, vector]).fit(frame).transform(frame).persist()


def stage_of(classifier=None, **settings):
    from steelyard.spark import SteelyardClassifier

    classifier = sy.NaiveBayes() if classifier is None else classifier
    return SteelyardClassifier(classifier=classifier, **settings)


def arrays(found, *names):
    return [np.stack([v.toArray() for v in found[name]]) for name in names]


def test_vectors_are_learned_from_by_the_names_of_what_was_assembled(indexed):
    model = stage_of(weightCol="w").fit(indexed)
    found = model.transform(indexed).toPandas()
    raw, proba = arrays(found, "rawPrediction", "probability")
    here = sy.NaiveBayes().fit(found[["b", "x"]], found["label"], found["w"])
    assert [*model.fitted.feature_names_in_] == ["b", "x"]
    np.testing.assert_allclose(proba, here.predict_proba(found[["b", "x"]]), atol=1e-12)
    np.testing.assert_allclose(raw[:, 1], np.log(proba[:, 1] / proba[:, 0]))
    np.testing.assert_array_equal(raw[:, 0], -raw[:, 1])
    assert found["prediction"].tolist() == proba.argmax(axis=1).tolist()
    assert (model.numClasses, model.numFeatures) == (2, 2)
    both = stage_of(featuresCol=["a", "features"]).fit(indexed)
    assert [*both.fitted.feature_names_in_] == ["a", "b", "x"]
    assert both.transform(indexed).where("prediction = label").count() > 1_000
    row = indexed.first()
    assert model.predict(row["features"]) == found["prediction"][0]
    assert model.predictProbability(row["features"]).toArray().tolist() == [*proba[0]]
    assert model.predictRaw(row["features"]).toArray().tolist() == [*raw[0]]


def test_columns_of_any_type_and_any_name_are_learned_from(frame):
    odd = ["a.b", "c`d", "`x`.y z"]
    rows = frame.select(*FEATURES, "y").toDF(*odd, "l.y")
    model = stage_of(sy.ShrinkageNB(), featuresCol=odd, labelCol="l.y").fit(rows)
    answered = model.transform(rows)
    assert answered.columns == [
        *rows.columns,
        "rawPrediction",
        "probability",
        "prediction",
    ]
    found = answered.toPandas()
    (proba,) = arrays(found, "probability")
    np.testing.assert_array_equal(proba, model.fitted.predict_proba(found[odd]))
    assert found["prediction"].tolist() == [*model.fitted.predict(found[odd])]
    assert model.numFeatures == 3
    row = rows.first()
    assert model.predict(row) == found["prediction"][0]
    quiet = model.copy().setRawPredictionCol("").setProbabilityCol("")
    assert quiet.transform(rows).columns == [*rows.columns, "prediction"]


def test_all_is_written_and_read_again(indexed, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import (
        BinaryClassificationEvaluator,
        MulticlassClassificationEvaluator,
    )
    from pyspark.ml.tuning import (
        CrossValidator,
        CrossValidatorModel,
        ParamGridBuilder,
    )

    from steelyard.spark import SteelyardClassifier

    stage = stage_of(featuresCol=FEATURES, thresholds=[0.4, 0.6])
    path = str(tmp_path / "stage")
    for _ in range(2):
        stage.write().overwrite().save(path)
    again = SteelyardClassifier.load(path)
    assert again.uid == stage.uid
    assert again.getFeaturesCol() == FEATURES and again.getThresholds() == [0.4, 0.6]
    assert again.getClassifier().get_params() == sy.NaiveBayes().get_params()

    grid = ParamGridBuilder().addGrid(
        stage.classifier, [sy.NaiveBayes(), sy.NaiveBayes(smoothing="laplace")]
    )
    judge = MulticlassClassificationEvaluator(metricName="logLoss")
    search = CrossValidator(
        estimator=stage, estimatorParamMaps=grid.build(), evaluator=judge, numFolds=2
    )
    search.write().overwrite().save(path)
    again = CrossValidator.load(path)
    maps = again.getEstimatorParamMaps()
    assert [[*one.values()] for one in maps] == [
        [*one.values()] for one in grid.build()
    ]
    best = again.fit(indexed)
    best.write().overwrite().save(path)
    assert CrossValidatorModel.load(path).avgMetrics == best.avgMetrics
    fitted = Pipeline(stages=[best.bestModel]).fit(indexed)
    fitted.write().overwrite().save(path)
    ours, theirs = (
        one.transform(indexed) for one in (fitted, PipelineModel.load(path))
    )
    columns = ["rawPrediction", "probability", "prediction"]
    pd.testing.assert_frame_equal(*(one.toPandas()[columns] for one in (ours, theirs)))
    assert BinaryClassificationEvaluator().evaluate(theirs) > 0.7
    assert judge.evaluate(theirs) < 0.6
    # The search leaves a pool of threads, which warns when it is gone.
    del search, again
    gc.collect()


def test_thresholds_move_the_prediction(indexed):
    model = stage_of().fit(indexed)
    found = model.setThresholds([0.9, 0.1]).transform(indexed).toPandas()
    (proba,) = arrays(found, "probability")
    assert found["prediction"].tolist() == (proba[:, 1] > 0.1).astype(float).tolist()
    for wrong in ([0.5, 0.3, 0.2], [-1.0, 1.0], [0.0, 0.0]):
        with pytest.raises(ParameterError, match="must be 2 numbers, one for each"):
            model.setThresholds(wrong).transform(indexed)


def test_labels_are_positions_even_if_some_have_no_row(indexed):
    rows = indexed.selectExpr("b", "x", "INT(label) + 2 AS label")
    model = stage_of(featuresCol=["b", "x"]).fit(rows)
    found = model.transform(rows).toPandas()
    raw, proba = arrays(found, "rawPrediction", "probability")
    assert model.numClasses == 4
    assert not proba[:, :2].any() and np.isneginf(raw[:, :2]).all()
    assert found["prediction"].dtype == float and {*found["prediction"]} == {2.0, 3.0}
    one = indexed.where("label = 0")
    assert stage_of().fit(indexed.where("label = 0 OR x > 2.5")).numClasses == 2
    assert one.schema["label"].metadata["ml_attr"]["vals"]


def test_invalid_rows_are_refused_or_skipped(indexed):
    rows = indexed.selectExpr(
        "b",
        "IF(b = 2, double('Infinity'), x) AS x",
        "IF(x > 2, NULL, label) AS label",
        "IF(x < -2, NULL, w) AS w",
    ).persist()
    settings = {"featuresCol": ["b", "x"], "weightCol": "w"}
    with pytest.raises(TableError, match=r"NaN|infinite"):
        stage_of(**settings).fit(rows)
    model = stage_of(handleInvalid="skip", **settings).fit(rows)
    whole = rows.toPandas().query("b != 2")
    assert model.transform(rows).count() == len(whole)
    whole = whole.dropna()
    here = sy.NaiveBayes().fit(whole[["b", "x"]], whole["label"], whole["w"])
    proba = [one.predict_proba(whole[["b", "x"]]) for one in (model.fitted, here)]
    np.testing.assert_allclose(*proba, atol=1e-12)
    with pytest.raises(TypeError, match="'error' or 'skip', not 'keep'"):
        stage_of(handleInvalid="keep")
    rows.unpersist()


def test_vectors_may_be_missing_sparse_infinite_or_arrays(spark):
    from pyspark.ml.linalg import Vectors

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 3)).round(1)
    numbers[:, 2] = 0.0
    vectors = [Vectors.dense(row) for row in numbers]
    vectors[:150] = [Vectors.sparse(3, {0: r[0], 1: r[1]}) for r in numbers[:150]]
    vectors[0], numbers[0] = None, np.nan
    labels = (numbers[:, 0] > 0).astype(float)
    rows = spark.createDataFrame(
        [*zip(vectors, labels.tolist(), strict=True)], ["v", "label"]
    )
    model = stage_of(featuresCol="v").fit(rows)
    here = sy.NaiveBayes().fit(
        pd.DataFrame(numbers, columns=["v_0", "v_1", "v_2"]), labels
    )
    (proba,) = arrays(model.transform(rows).toPandas(), "probability")
    np.testing.assert_allclose(proba, here.predict_proba(numbers), atol=1e-12)
    # Frames without a stage read vectors too, those of other stages left aside.
    there = sy.NaiveBayes().fit(rows, "label")
    more = model.transform(rows).drop("prediction")
    found = there.predict_proba(more.drop("probability")).toPandas()
    np.testing.assert_allclose(np.stack(found["probability"]), proba, atol=1e-12)

    cells = [None, *numbers[1:].tolist()]
    cells[1][0] = None
    numbers[1, 0] = np.nan
    proba = here.predict_proba(numbers)
    as_arrays = spark.createDataFrame(
        [*zip(cells, labels.tolist(), strict=True)], "v array<double>, label double"
    )
    (proba_of_arrays,) = arrays(model.transform(as_arrays).toPandas(), "probability")
    np.testing.assert_allclose(proba_of_arrays, proba, atol=1e-12)
    wide = rows.union(spark.createDataFrame([(Vectors.dense([1.0]), 0.0)], rows.schema))
    with pytest.raises(TableError, match="vector of 1 numbers, and 3 are expected"):
        stage_of(featuresCol="v").fit(wide)
    vectors[0] = Vectors.dense([np.inf, 0.0, 0.0])
    rows = spark.createDataFrame(
        [*zip(vectors, labels.tolist(), strict=True)], ["v", "label"]
    )
    with pytest.raises(TableError, match="'v_0' holds an infinite number"):
        stage_of(featuresCol="v").fit(rows)
    model = stage_of(featuresCol="v", handleInvalid="skip").fit(rows)
    assert model.transform(rows).count() == 299


def test_wrong_columns_and_classifiers_are_refused_in_words(indexed):
    with pytest.raises(ColumnError, match=r"no column 'features'.* Set featuresCol"):
        stage_of().fit(indexed.drop("features"))
    with pytest.raises(ColumnError, match=r"not a column of vectors.*a list, \['x'\]"):
        stage_of(featuresCol="x").fit(indexed)
    with pytest.raises(ColumnError, match=r"no column 'labels'. Did you mean 'label'"):
        stage_of(labelCol="labels").fit(indexed)
    with pytest.raises(ColumnError, match="with its vectors as columns"):
        sy.NaiveBayes().fit(indexed.select("x", "features", "label"), "label")
    with pytest.raises(ParameterError, match="cannot be saved"):
        stage_of(object())


def test_setters_are_those_of_spark_ml(indexed):
    from steelyard.spark import SteelyardClassifier

    stage = SteelyardClassifier()
    assert type(stage.getClassifier()) is sy.ShrinkageNB
    stage.setClassifier(sy.NaiveBayes()).setFeaturesCol(["b"]).setLabelCol("y")
    stage.setWeightCol("w").setHandleInvalid("skip").setPredictionCol("p")
    stage.setProbabilityCol("q").setRawPredictionCol("r").setThresholds([1.0, 1.0])
    assert stage.getFeaturesCol() == ["b"] and stage.getHandleInvalid() == "skip"
    assert "featuresCol: a column of vectors, or a list" in stage.explainParams()
    model = stage.fit(indexed)
    assert {"p", "q", "r"} <= {*model.transform(indexed).columns}
    assert model.setFeaturesCol("features").getFeaturesCol() == "features"
