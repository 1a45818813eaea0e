"""Files that the recorder writes are judged by the program: right trainings equal, wrong ones by the first tensor."""
import contextlib
import io
import json
import os
import subprocess
import tempfile

import h5py
import torch

import rematch_torch
import wrong
from rematch_torch.plan import program

from .support import Case, network


def rematch(*arguments):
    done = subprocess.run([program(), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Recorded(Case):
    def setUp(self):
        super().setUp()
        self.made = tempfile.TemporaryDirectory()
        self.addCleanup(self.made.cleanup)

    def path(self, name):
        return os.path.join(self.made.name, name)

    def record(self, name, run, model, batch, **more):
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        with rematch_torch.Recorder(self.path(name), run, optimizer, **more) as recorder:
            for step in range(3):
                torch.manual_seed(step)
                optimizer.zero_grad()
                loss = run(*batch)
                loss.backward()
                optimizer.step()
                recorder.step(loss)
        return self.path(name)

    def planned(self, name, network_name, budget):
        model, batch = network(network_name)
        run = rematch_torch.compile(model, budget) if budget else model
        return self.record(name, run, model, batch)

    def test_planned_equals_plain(self):
        a, b = self.planned("a.h5", "gpt", None), self.planned("b.h5", "gpt", "60%")
        code, out, err = rematch("compare", a, b)
        self.assertEqual(code, 0, out + err)
        self.assertIn("EQUAL IN EVERY BIT, but without plans it is a claim of torch", out)
        found = json.loads(rematch("compare", a, b, "--json")[1])
        self.assertTrue(found["equal"] and not found["proven"])
        self.assertEqual((found["losses_equal"], found["gradients_equal"], found["state_equal"]), (3, 3, 3))

    def test_equal_files_that_recompute_nothing_prove_nothing(self):
        a, b = self.planned("a.h5", "resnet", None), self.planned("b.h5", "resnet", None)
        code, out, _ = rematch("compare", a, b)
        self.assertEqual(code, 4)
        self.assertIn("nothing is recomputed: torch", out)

    def test_examples_end_with_the_right_verdict(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), self.assertRaises(SystemExit) as ended:
            wrong.main(self.made.name)
        self.assertEqual(ended.exception.code, 0, printed.getvalue())
        self.assertEqual(printed.getvalue().count("DIFFERS"), 5)
        self.assertEqual(printed.getvalue().count("EQUAL IN EVERY BIT"), 5)

    def test_zero_gradients_are_recognised(self):
        """The digest of zeros is the program's own, whose pieces are of 64 KiB."""
        class Half(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.idle = torch.nn.Linear(300, 300), torch.nn.Linear(300, 300)

            def forward(self, x):
                return (self.used(x) + 0 * self.idle(x)).square().mean()
        a, b = (self.record(n, m, m, (torch.ones(2, 300),), recomputes=r) for n, m, r in
                (("a.h5", self.twin(Half), 0), ("b.h5", self.twin(Half), 1)))
        code, out, _ = rematch("compare", a, b)
        self.assertEqual(code, 4)
        self.assertIn("zero at every step, of 4 tensors the gradients of idle.weight, idle.bias", " ".join(out.split()))

    def twin(self, make):
        torch.manual_seed(0)
        return make()

    def test_files_are_listed_shown_and_reported(self):
        a, b = self.planned("a.h5", "unet", None), self.planned("b.h5", "unet", "75%")
        code, out, err = rematch("list", self.made.name)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"b +optimal .* equal")
        code, out, err = rematch("show", b)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("claimed_by", out)
        code, out, err = rematch("report", a, b, "--out", self.path("page.html"))
        self.assertEqual((code, err), (0, ""))

    def test_provenance_is_kept(self):
        with h5py.File(self.planned("a.h5", "gpt", None)) as f:
            recorded = f["provenance/torch"]
            self.assertIn("class GPT(nn.Module)", recorded["source"][()].decode())
            self.assertEqual(recorded.attrs["threads"], 1)
            self.assertEqual(recorded.attrs["deterministic"], 0)
            self.assertTrue(recorded.attrs["seed"].isdigit())
            self.assertEqual(f["plan"].attrs["policy"], "store_all")

    def test_a_failed_loop_is_not_completed(self):
        model, batch = network("gpt")
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with self.assertRaises(KeyError), rematch_torch.Recorder(self.path("a.h5"), model, optimizer) as recorder:
            for _ in range(2):
                loss = model(*batch)
                loss.backward()
                recorder.step(loss)
            raise KeyError("x")
        with h5py.File(self.path("a.h5")) as f:
            self.assertTrue(f.attrs["status"].startswith("failed"))
            self.assertEqual(len(f["steps/loss"]), 2)
