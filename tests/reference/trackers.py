"""Reads runs that `zoo track` wrote, by TensorBoard's own readers and by MLflow's client, and compares
them with the runs' log.jsonl, recipes and evaluations.

    pip install tensorboard mlflow-skinny
    zoo track --all --tensorboard tb --mlflow mlruns
    MLFLOW_ALLOW_FILE_STORE=true python trackers.py ~/.local/share/zoo/runs tb mlruns

Writes nothing but prints the versions and what was compared; it fails at the first difference.
MLflow 3 reads its file store only with that variable.
"""

import glob
import json
import math
import os
import sys
from importlib.metadata import version

import numpy as np
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.util import tensor_util


def expected(run):
    """Tag -> [(step, value)] of a run, from its log and evaluations, and its starting time."""
    found, unit, started = {}, "tokens", None

    def add(tag, step, value):
        found.setdefault(tag, []).append((step, math.nan if value is None else float(value)))

    for line in open(os.path.join(run, "log.jsonl")):
        line = json.loads(line)
        step = line.get("update")
        if line["event"] == "session":
            unit = line["unit"]
            started = line.get("time") if started is None else started
        elif line["event"] == "train":
            for tag, key in [
                ("loss", "loss"),
                ("learning_rate", "lr"),
                ("gradient_norm", "grad_norm"),
                ("loss_scale", "scale"),
                ("skipped_updates", "skipped"),
            ]:
                add("train/" + tag, step, line[key])
            add(f"train/{unit}_per_second", step, line["tokens"] / line["seconds"])
            for name, term in line["terms"].items():
                add("train/terms/" + name, step, term["mean"])
        elif line["event"] == "epoch":
            values = [(tag, line.get(key)) for tag, key in [
                ("epoch/train_loss", "train_loss"), ("valid/loss", "valid_loss"), ("valid/score", "valid_score")]]
            values = [(tag, value) for tag, value in values if value is not None]
            values += [("valid/terms/" + name, term["mean"]) for name, term in line["terms"].items()]
            for tag, value in values + ([("epoch/number", line["epoch"])] if values else []):
                add(tag, step, value)
        elif line["event"] == "end" and line["updates"] > 0:
            add("train/loss", step, line["loss"])

    def evaluations(folder):
        for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
            if not path.endswith(".samples.json"):
                yield json.load(open(path))

    def scores(evaluation, step):
        seen = {}
        for score in evaluation["scores"]:
            tag = "/".join([evaluation["eval"], evaluation["decode"], score["metric"]])
            seen[tag] = seen.get(tag, 0) + 1
            add(tag if seen[tag] == 1 else f"{tag}-{seen[tag]}", step, score["value"])

    points = [one for kind in ("epoch", "update") for folder in glob.glob(os.path.join(run, "eval", kind + "-*"))
              for one in evaluations(folder)]
    for one in sorted(points, key=lambda one: one["update"]):
        scores(one, one["update"])
    trained = os.path.join(run, "trained.json")
    if os.path.exists(trained):
        for one in evaluations(os.path.join(run, "eval")):
            scores(one, json.load(open(trained))["updates"])
    return found, started


def same(found, due, what):
    assert len(found) == len(due), f"{what}: {len(found)} points, not {len(due)}"
    for one, other in zip(found, due):
        equal = one[1] == other[1] or math.isnan(one[1]) and math.isnan(other[1])
        assert one[0] == other[0] and equal, f"{what}: {one}, not {other}"


def main(runs, tensorboard, mlflow):
    print(" ".join(f"{name} {version(name)}" for name in ("tensorboard", "mlflow-skinny")))
    folders = sorted(os.path.dirname(path) for path in glob.glob(os.path.join(runs, "*", "*", "run.json")))
    names = [os.path.relpath(folder, runs) for folder in folders]
    shown = EventMultiplexer().AddRunsFromDirectory(tensorboard).Reload()
    assert sorted(shown.Runs()) == names, (sorted(shown.Runs()), names)
    client = MlflowClient("file:" + os.path.abspath(mlflow))
    experiments = {one.experiment_id: one.name for one in client.search_experiments()}
    stored = {}
    for run in client.search_runs(list(experiments), max_results=50_000):
        place = (run.data.tags["zoo.key"], int(run.data.tags["zoo.seed"]), run.data.tags["zoo.arm"])
        assert place not in stored, f"{place} is there twice"
        stored[place] = run
    points = 0
    for folder, name in zip(folders, names):
        due, started = expected(folder)
        card = json.load(open(os.path.join(folder, "run.json")))
        # As TensorBoard shows it: all scalars are tensors of the plugin.
        tags = shown.PluginRunToTagToContent("scalars").get(name, {})
        assert sorted(tags) == sorted(due), (sorted(tags), sorted(due))
        texts = shown.PluginRunToTagToContent("text")[name]
        assert sorted(texts) == ["hyperparameters", "run"], texts
        text = tensor_util.make_ndarray(shown.Tensors(name, "run")[0].tensor_proto).item().decode()
        assert card["recipe"] in text and card["key"] in text
        for tag, values in due.items():
            events = shown.Tensors(name, tag)
            # The reader keeps a sample of long series, with the last one.
            kept = {step: np.float32(value) for step, value in values}
            found = [(one.step, float(tensor_util.make_ndarray(one.tensor_proto))) for one in events]
            same(found, [(step, float(kept[step])) for step, _ in found], f"{name} {tag}")
            assert len(found) == min(len(values), 500) or len(values) > 500 or len(kept) < len(values), tag
            if started is not None:
                assert all(one.wall_time >= started for one in events), tag
            points += len(found)
        # The plain reader, without samples: every point, in order.
        plain = EventAccumulator(os.path.join(tensorboard, name), size_guidance={"tensors": 0}).Reload()
        for tag, values in due.items():
            found = [(one.step, float(tensor_util.make_ndarray(one.tensor_proto))) for one in plain.Tensors(tag)]
            same(found, [(step, float(np.float32(value))) for step, value in values], f"{name} {tag}")
        run = stored.pop((card["key"], card["seed"], card["arm"]))
        tier = "." + card["tier"] if card["tier"] else ""
        assert run.info.run_name == f"{card['recipe']}{tier}:{card['arm']}:{card['seed']}"
        assert experiments[run.info.experiment_id] == card["recipe"] + tier
        assert sorted(run.data.metrics) == sorted(due)
        for tag, values in due.items():
            history = client.get_metric_history(run.info.run_id, tag)
            same([(one.step, one.value) for one in history], values, f"{run.info.run_id} {tag}")
        assert run.data.params["train.seed"] == str(card["seed"]) and "precision.compute" in run.data.params
        ended = os.path.exists(os.path.join(folder, "trained.json"))
        assert not ended or run.info.status in ("FINISHED", "FAILED"), run.info.status
        assert client.list_artifacts(run.info.run_id) == []
    assert not stored, stored
    print(f"{len(folders)} runs, {points} points that TensorBoard shows: equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
