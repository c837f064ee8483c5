# SPDX-License-Identifier: Apache-2.0
"""What Python models pass to pb_utils and ask of it: numbers of numpy's, and objects that were never initialised."""

import pytest
from harness import python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    python_models.write_runner(folder, "plain")
    python_models.write(folder, "id", python_models.IDENTITY)
    with servers.running(folder, log_dir=tmp_path_factory.mktemp("server"), env=python_models.ENVIRONMENT) as running:
        yield running


# Defines ask(), which makes a request with these arguments and returns what it would send.
ASK = """
def ask(**more):
    return pb_utils.InferenceRequest(model_name="id", requested_output_names=["OUTPUT0"],
                                     inputs=[pb_utils.Tensor("INPUT0", np.ones(1, np.float32))], **more)
"""

REFUSED = """
try:
    CALL
except TypeError as error:
    return say(str(error))
return say("accepted")
"""


def test_numbers_of_numpys_are_numbers_for_metrics(server):
    assert python_models.run(server, "plain", """
import decimal, fractions
make = pb_utils.MetricFamily
families = [make("py_number_%d" % kind, "", kind) for kind in (make.COUNTER, make.GAUGE, make.HISTOGRAM)]
counter, gauge = (family.Metric(labels={}) for family in families[:2])
histogram = families[2].Metric(labels={}, buckets=[1.0, np.float32(2)])
for value in (np.float32(2), np.int64(3), np.array(4), fractions.Fraction(1, 2), decimal.Decimal("0.5"), True):
    counter.increment(value)
    histogram.observe(value)
gauge.set(np.float16(-2))
return say("%s %s" % (counter.value(), gauge.value()))
""") == "11.0 -2.0"


@pytest.mark.parametrize("value", ["'1'", "b'1'", "None", "[1]", "1j"])
def test_what_is_no_number_is_refused_by_metrics(server, value):
    code = """
family = pb_utils.MetricFamily("py_refusing", "", pb_utils.MetricFamily.GAUGE)
gauge = family.Metric(labels={})
""" + REFUSED.replace("CALL", f"gauge.set({value})")
    assert python_models.run(server, "plain", code).startswith("the value must be a number, not ")


@pytest.mark.parametrize("argument", [
    "model_version=np.int64(1)", "timeout=np.int32(5000000)", "flags=np.uint8(0)", "correlation_id=np.int64(0)",
    "preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, np.int64(0))"])
def test_integers_of_numpys_are_integers_for_requests(server, argument):
    assert python_models.run(server, "plain", ASK + f"""
response = ask({argument}).exec(decoupled=np.bool_(False))
return say(str(response.error() if response.has_error() else response.output_tensors()[0].as_numpy()[0]))
""") == "1.0"


@pytest.mark.parametrize("name", ["model_version", "timeout", "flags"])
@pytest.mark.parametrize("value", ["True", "np.True_", "'1'", "1.0", "np.float32(1)", "None"])
def test_what_is_no_integer_is_refused_by_requests(server, name, value):
    refused = python_models.run(server, "plain", ASK + REFUSED.replace("CALL", f"ask({name}={value})"))
    assert refused.startswith(f"incompatible arguments: {name} must not be ")


def test_flags_of_numpys_are_flags(server):
    assert python_models.run(server, "plain", """
request.set_flags(np.int64(2))
request.set_release_flags(np.int64(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL))
request.get_response_sender().send(say(str(request.flags())), np.int64(1))
""") == "2"


def test_a_request_that_the_server_sent_can_be_asked_for_everything(server):
    assert python_models.run(server, "plain", """
return say(repr((request.model_name(), request.model_version(), request.preferred_memory(), request.request_id(),
                 request.correlation_id(), request.flags(), request.timeout(), request.parameters(),
                 request.requested_output_names(), request.trace().get_context())))
""") == repr(("plain", 1, None, "", 0, 0, 0, "{}", {"OUTPUT0"}, None))


@pytest.mark.parametrize("code", [
    "return pb_utils.InferenceResponse([NEW(pb_utils.Tensor)])",
    "return NEW(pb_utils.InferenceResponse)",
    "return NEW(pb_utils.InferenceRequest)",
    "return pb_utils.InferenceResponse(error=NEW(pb_utils.TritonError))",
    "request._inputs.insert(0, NEW(pb_utils.Tensor))\nreturn pb_utils.get_input_tensor_by_name(request, 'INPUT0')",
    "return pb_utils.get_input_tensor_by_name(NEW(pb_utils.InferenceRequest), 'INPUT0')",
    "return pb_utils.get_output_tensor_by_name(NEW(pb_utils.InferenceResponse), 'OUTPUT0')",
    "return pb_utils.InferenceResponse([NEW(Derived)])",
    "return say(str(NEW(pb_utils.Tensor).as_numpy()))",
    "return say(str(NEW(pb_utils.Tensor).to_dlpack()))",
    "NEW(pb_utils.InferenceRequest).exec()",
    "NEW(pb_utils.InferenceRequest).model_name()",
    "pb_utils.InferenceRequest(model_name='id', requested_output_names=['OUTPUT0'], inputs=[NEW(pb_utils.Tensor)]).exec()",
    "request.get_response_sender().send(pb_utils.InferenceResponse([NEW(pb_utils.Tensor)]), 1)",
    "NEW(pb_utils.InferenceResponseSender).send(say('x'), 1)",
    "NEW(pb_utils.Metric).set(1)",
    "next(NEW(pb_utils.ResponseIterator))",
])
def test_an_object_that_was_never_initialised_is_an_error_and_ends_nothing(server, code):
    workers = {worker.pid for worker in python_models.workers(server)}
    head = "class Derived(pb_utils.Tensor):\n    pass\nNEW = lambda kind: kind.__new__(kind)\n"
    with pytest.raises(InferenceServerException, match="Failed to process the request"):
        python_models.run(server, "plain", head + code)
    assert python_models.run(server, "plain", "return say('well')") == "well"
    assert {worker.pid for worker in python_models.workers(server)} == workers
