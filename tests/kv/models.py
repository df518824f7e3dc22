"""The model and GPU tables of the repository, for the tests of this room."""

from pathlib import Path

from kvbench.kv.gpus import Gpus, load_gpus
from kvbench.kv.models import Model, load_models

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "kv"
MODELS: dict[str, Model] = load_models(ROOT / "workloads" / "models.toml")
GPUS: Gpus = load_gpus(ROOT / "workloads" / "gpus.toml")
