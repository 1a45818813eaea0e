"""A graph file has what the model has: bytes, names, what is random, kept and in place."""
import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import rematch_torch
from rematch_torch.plan import ask

from . import HERE, models
from .support import NETWORKS, Case, network

GRAPHS = os.path.join(HERE, "..", "..", "..", "tests", "torch_graphs")


class Export(Case):
    def export(self, model, batch, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.json")
            root = rematch_torch.export(model, batch, path, **{"profile": "flops", **more})
            with open(path) as f:
                self.assertEqual(json.load(f), json.loads(json.dumps(root)))
            return root, ask(path, "100%")

    def operators(self, root, part):
        found = [o for o in root["operators"] if part in o["name"]]
        self.assertTrue(found, part)
        return found

    def test_golden_graphs_are_what_is_exported(self):
        """Other versions of torch trace other operators: then the golden ones are of that version."""
        with open(os.path.join(GRAPHS, "torch")) as f:
            version = f.read().strip()
        if not torch.__version__.startswith(version):
            self.skipTest(f"the golden graphs are of torch {version}")
        for name in sorted(set(NETWORKS) - {"bert"}):
            with self.subTest(network=name), open(os.path.join(GRAPHS, f"{name}.json")) as f:
                torch._dynamo.reset()
                model, batch = network(name)
                self.assertEqual(json.load(f), json.loads(json.dumps(self.export(model, batch)[0])))

    def test_nothing_runs(self):
        model, batch = network("resnet")
        before = {k: v.clone() for k, v in model.state_dict().items()}
        seed = torch.get_rng_state()
        self.export(model, batch, profile="measure")
        self.assertTrue(all(torch.equal(v, before[k]) for k, v in model.state_dict().items()))
        self.assertTrue(torch.equal(seed, torch.get_rng_state()))

    def test_names_have_module_and_line(self):
        model, batch = network("gpt")
        root, _ = self.export(model, batch)
        self.operators(root, "layers.0.qkv/addmm@gpt.py:")
        names = [o["name"] for o in root["operators"]]
        self.assertEqual(len(names), len(set(names)))

    def test_masks_are_kept_and_draws_are_not_repeated(self):
        root, _ = self.export(models.Dropout(), (torch.randn(32, 32),))
        kept = {t["name"]: t["bytes"] for t in root["tensors"] if t.get("kept")}
        self.assertEqual(sorted(kept.values()), [32 * 32] * 6)
        self.assertFalse(any(o.get("random") for o in self.operators(root, "native_dropout")))
        torch._dynamo.reset()
        root, _ = self.export(models.Draws(), (torch.randn(32, 32),))
        self.assertTrue(all(o.get("random") for o in self.operators(root, "randn_like")))

    def test_what_reads_a_moved_buffer_runs_once(self):
        root, _ = self.export(models.OldValue(), (torch.randn(32, 32),))
        self.assertEqual(sum(bool(o.get("random")) for o in root["operators"] if o["name"].startswith("add")), 7,
                         "those of six layers, and that of the new value")
        torch._dynamo.reset()
        root, _ = self.export(models.Norm(), (torch.randn(32, 32),))
        norms = self.operators(root, "_native_batch_norm_legit_functional")
        self.assertFalse(any(o.get("random") for o in norms))

    def test_views_have_no_operator_and_no_bytes(self):
        root, _ = self.export(models.Attention(), (torch.randn(32, 32),))
        for view in ("/view", "/t_", "transpose", "split", "expand", "getitem"):
            self.assertFalse([o for o in root["operators"] if view in o["name"]], view)

    def test_sums_of_gradients_are_in_place(self):
        root, _ = self.export(models.Dropout(), (torch.randn(32, 32),))
        sums = [o for o in root["operators"] if o["name"].startswith("add_") and o.get("phase") == "backward"]
        self.assertTrue(sums and all(o.get("in_place") for o in sums))

    def test_a_loss_function_and_a_target(self):
        root, _ = self.export(torch.nn.Linear(8, 4), (torch.randn(2, 8), torch.tensor([1, 2])), loss_fn=F.cross_entropy)
        self.operators(root, "nll_loss_forward")
        given = sum(t["bytes"] for t in root["tensors"] if t.get("constant"))
        self.assertEqual(given, 4 * (2 * 8 + 4 * 8 + 4) + 2 * 8, "inputs, weight, bias and targets")

    def test_measured_times_are_cached(self):
        with tempfile.TemporaryDirectory() as folder:
            costs = rematch_torch.Profile(path=os.path.join(folder, "profile.json"))
            model, batch = network("unet")
            first, _ = self.export(model, batch, profile=costs)
            again = rematch_torch.Profile(path=os.path.join(folder, "profile.json"))
            torch._dynamo.reset()
            second, _ = self.export(model, batch, profile=again)
            self.assertEqual(again.seconds, 0)
            self.assertEqual([o["time"] for o in first["operators"]], [o["time"] for o in second["operators"]])
            self.assertTrue(all(o["time"] > 0 for o in first["operators"] if "convolution" in o["name"]))

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(HERE, ".."), folder]))
            with open(os.path.join(folder, "mine.py"), "w") as f:
                f.write("import torch\ndef f():\n    return torch.nn.Linear(2, 1), torch.ones(1, 2), lambda y, t: y.sum()\n"
                        "def two():\n    return torch.nn.Bilinear(2, 2, 1), (torch.ones(1, 2), torch.ones(1, 2))\n"
                        "def frozen():\n    return torch.nn.Linear(2, 1).requires_grad_(False), torch.ones(1, 2)\n")
            for function, code, says in (("two", 0, "net.json: "), ("frozen", 1, "no gradients to compute")):
                done = subprocess.run([sys.executable, "-m", "rematch_torch", "export", f"mine:{function}", "--flops"],
                                      cwd=folder, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stdout + done.stderr)
                self.assertNotIn("Traceback", done.stderr)
