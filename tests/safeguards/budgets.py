"""The safeguards of the budget and of what draws on it: streams, answers, tools, an SDK, graphs."""

from __future__ import annotations

from typing import Final

from .kinds import Safeguard

BUDGET: Final = "labkit/recovery/budget.py"
RETRY: Final = "labkit/recovery/retry.py"
CLIENT: Final = "labkit/recovery/stream/client.py"
RECEIVING: Final = "labkit/recovery/stream/receiving.py"
CALLS: Final = "labkit/recovery/calls.py"
TURN: Final = "labkit/recovery/turn.py"
PAYING: Final = "labkit/providers/paying.py"
GRAPHS: Final = "labkit/scenarios/framework_retries.py"
SCENARIOS: Final = "labkit/scenarios/budgets.py"

ACCOUNT: Final = "recovery/test_budget.py::test_"
ANSWER: Final = "recovery/stream/test_answer_budget.py::test_"
EXECUTED: Final = "recovery/test_executed_calls.py::test_"
SDK: Final = "providers/test_paying.py::test_"
CASES: Final = "cases/test_budget.py::test_case_"
SHOWN: Final = "scenarios/test_budgets.py::test_"


def _rule(name: str, file: str, old: str, new: str, *red: str) -> Safeguard:
    return Safeguard(
        name=name, file=file, old=old, new=new, red=tuple(f"tests/{test}" for test in red)
    )


_ACCOUNT: Final = (
    _rule(
        "a wait up to the deadline is a wait past it",
        BUDGET,
        "if wait >= remaining:",
        "if wait > remaining:",
        ACCOUNT + "the_deadline_counts_from_the_moment_when_the_run_was_accepted",
        ACCOUNT + "a_wait_that_is_refused_is_not_counted",
    ),
    _rule(
        "requests have a limit",
        BUDGET,
        "if spent.requests >= limits.requests:",
        "if spent.requests > limits.requests:",
        ACCOUNT + "requests_are_counted_one_by_one_and_the_next_one_is_refused_by_name",
        CASES + "40a_one_budget_for_both_loops_sends_what_it_allows",
    ),
    _rule(
        "retries have a limit",
        BUDGET,
        "if retry and spent.retries >= limits.retries:",
        "if retry and spent.retries > limits.retries:",
        ACCOUNT + "a_retry_is_counted_before_its_wait_so_that_those_who_wait_count_too",
        CASES + "40b_runs_that_share_a_retry_budget_end_at_once_with_their_last_503",
    ),
    _rule(
        "one tool has a limit",
        BUDGET,
        "if of_tool >= limits.per_tool:",
        "if of_tool > limits.per_tool:",
        ACCOUNT + "one_tool_has_its_own_limit_and_others_are_not_charged_for_it",
    ),
    _rule(
        "a budget is made from limits",
        BUDGET,
        "        if not isinstance(limits, BudgetLimits):\n",
        "        if False:\n",
        ACCOUNT + "a_budget_refuses_what_makes_no_sense_by_name",
    ),
    _rule(
        "an amount is a number from 0",
        BUDGET,
        "            if not is_amount(amount):",
        "            if False:",
        ACCOUNT + "a_budget_refuses_what_makes_no_sense_by_name",
    ),
    _rule(
        "a layer has a name",
        BUDGET,
        '        if not isinstance(layer, str) or not layer or "/" in layer:\n',
        "        if False:\n",
        ACCOUNT + "a_budget_refuses_what_makes_no_sense_by_name",
    ),
    _rule(
        "cost has a limit",
        BUDGET,
        "if spent.cost + cost > limits.cost + DUST:",
        "if spent.cost > limits.cost:",
        ACCOUNT + "what_costs_more_than_is_left_is_refused_and_not_charged",
    ),
    _rule(
        "what costs add up to is compared without the dust of floats",
        BUDGET,
        "> limits.cost + DUST:",
        "> limits.cost:",
        ACCOUNT + "three_requests_of_a_tenth_fit_into_three_tenths_and_a_fourth_does_not",
    ),
    _rule(
        "a retry is counted when it is decided",
        BUDGET,
        "self._add(Spent(retries=1, waited=wait))",
        "pass",
        ACCOUNT + "a_retry_is_counted_before_its_wait_so_that_those_who_wait_count_too",
        CASES + "40b_runs_that_share_a_retry_budget_end_at_once_with_their_last_503",
    ),
    _rule(
        "all layers draw on the run's account",
        BUDGET,
        "self._spent.get(RUN, NOTHING),",
        "self._spent.get(self.layer, NOTHING),",
        ACCOUNT + "layers_draw_on_one_account_and_each_can_say_what_it_used",
    ),
    _rule(
        "a tool keeps time for handing its result back",
        BUDGET,
        "tool, self.deadline - self.limits.hand_back",
        "tool, self.deadline",
        ACCOUNT + "a_tool_ends_early_enough_to_hand_its_result_back",
        SHOWN + "a_scenario_shows_the_figures_and_findings_of_its_claim[deadline]",
    ),
    _rule(
        "a tool within a tool hands back once",
        BUDGET,
        "if tool and not self.tool:",
        "if tool:",
        ACCOUNT + "a_tool_within_a_tool_belongs_to_the_outer_one_and_hands_back_once",
    ),
    _rule(
        "a limit is a finite number",
        "labkit/recovery/policy.py",
        "and 0 <= value <= MOST",
        "and not (value < 0 or value > MOST)",
        ACCOUNT + "every_wrong_limit_is_named_at_once",
    ),
    _rule(
        "what was never sent is definite",
        BUDGET,
        "        self.definite = True\n",
        "",
        ACCOUNT + "a_refusal_is_definite_since_nothing_was_sent",
    ),
)

_STREAMS: Final = (
    _rule(
        "each attempt of a stream pays at the door",
        RETRY,
        "                budget.request()\n",
        "                pass\n",
        ACCOUNT + "each_attempt_pays_at_the_door_and_each_retry_before_its_wait",
        ACCOUNT + "nothing_is_sent_where_not_even_the_first_request_is_allowed",
    ),
    _rule(
        "each retry of a stream asks the budget before its wait",
        RETRY,
        "                decision = agreed(decision, budget)\n",
        "                pass\n",
        ACCOUNT + "each_attempt_pays_at_the_door_and_each_retry_before_its_wait",
        CASES + "40b_runs_that_share_a_retry_budget_end_at_once_with_their_last_503",
    ),
    _rule(
        "a retry in a new segment is paid for too",
        RETRY,
        "if decision.action != GIVE_UP and (short",
        "if decision.action == RETRY and (short",
        ACCOUNT + "whatever_a_retry_begins_with_it_is_paid_for[new_segment]",
    ),
    _rule(
        "the last real error leaves when the budget is used up during a wait",
        RETRY,
        "leaving = last or short",
        "leaving = short",
        ACCOUNT + "whoever_waited_while_others_used_up_the_requests_leaves_with_its_own_last_error",
        ACCOUNT + "a_refusal_from_a_layer_inside_leaves_as_the_last_real_error",
    ),
    _rule(
        "the nearer of two deadlines counts",
        RETRY,
        "min(policy.total, budget.remaining)",
        "policy.total",
        ACCOUNT + "the_nearer_deadline_is_the_one_that_counts",
        SHOWN + "a_scenario_shows_the_figures_and_findings_of_its_claim[deadline]",
    ),
)

_ANSWERS: Final = (
    _rule(
        "each recovery of an answer asks the budget",
        CLIENT,
        "    if live.budget is not None and (short := live.budget.retry(wait)):\n"
        "        raise BudgetExhausted(short)\n",
        "",
        ANSWER + "each_request_and_each_recovery_draws_on_the_budget",
        ANSWER + "at_its_end_the_text_is_kept_and_the_page_offers_to_go_on[limits1]",
    ),
    _rule(
        "an answer on a used-up budget is failed and offers to go on",
        CLIENT,
        "        _failed(live, short.what)\n",
        "        pass\n",
        ANSWER + "at_its_end_the_text_is_kept_and_the_page_offers_to_go_on[limits0]",
    ),
    _rule(
        "the first request of an answer pays",
        CLIENT,
        '    live.services.page("status", state="generating")\n    live.pay()\n',
        '    live.services.page("status", state="generating")\n',
        ANSWER + "nothing_is_asked_where_the_budget_allows_no_request",
    ),
    _rule(
        "a continuation pays before the record is changed for it",
        CLIENT,
        "        live.pay()\n        run = live.change(new_attempt(live.run))\n",
        "        run = live.change(new_attempt(live.run))\n        live.pay()\n",
        ANSWER + "the_door_is_asked_before_the_record_begins_another_attempt",
    ),
    _rule(
        "another answer pays before the text of the first is put aside",
        CLIENT,
        "    live.pay()\n    before = live.run\n"
        "    run = live.change(new_attempt(before, afresh=True))\n",
        "    before = live.run\n"
        "    run = live.change(new_attempt(before, afresh=True))\n    live.pay()\n",
        ANSWER + "the_door_is_asked_before_the_record_begins_another_attempt",
    ),
    _rule(
        "an answer ends at the budget's deadline",
        RECEIVING,
        "return left if live.budget is None else min(left, live.budget.remaining)",
        "return left",
        ANSWER + "an_answer_ends_at_the_budgets_deadline_where_that_is_the_nearer_one",
    ),
    _rule(
        "a budget makes no answer longer than its own limits",
        RECEIVING,
        "else min(left, live.budget.remaining)",
        "else live.budget.remaining",
        ANSWER
        + "a_budget_that_lasts_longer_makes_neither_an_answer_nor_a_recovery_longer[before0-60.0]",
        ANSWER
        + "a_budget_that_lasts_longer_makes_neither_an_answer_nor_a_recovery_longer[before1-10.0]",
    ),
    _rule(
        "going on by hand makes a budget of its own",
        RECEIVING,
        "self.budget = services.new_budget() if services.new_budget else None",
        "made = getattr(services.new_budget, 'made', None)\n"
        "        self.budget = made[0] if made else services.new_budget and services.new_budget()",
        ANSWER + "going_on_by_hand_begins_with_a_fresh_budget",
    ),
)

_TOOLS: Final = (
    _rule(
        "the key of a call with effects has no id of the model in it",
        CALLS,
        "            work = self._executed(*permitted, permitted.tool.service)\n",
        "            tool = replace(permitted.tool, resource=lambda arguments: call.call_id)\n"
        "            work = self._executed(tool, permitted.arguments, permitted.tool.service)\n",
        EXECUTED + "the_model_making_it_again_under_a_new_id_has_one_effect[same answer]",
        EXECUTED + "the_model_making_it_again_under_a_new_id_has_one_effect[next model step]",
        EXECUTED + "the_model_making_it_again_under_a_new_id_has_one_effect[next turn]",
    ),
    _rule(
        "the key of a call with effects names the thing that it is done to",
        CALLS,
        "            resource = tool.resource(arguments)\n",
        "            resource = tool.resource(arguments) and tool.name\n",
        EXECUTED + "another_order_with_the_same_amount_has_an_effect_of_its_own",
    ),
    _rule(
        "a call's key belongs to its tenant",
        CALLS,
        "budget, tenant = self.executor, self.budget, self.owner.tenant",
        'budget, tenant = self.executor, self.budget, "acme"',
        EXECUTED + "the_same_order_of_another_tenant_is_another_operation",
    ),
    _rule(
        "what may have been done is unknown in the session",
        CALLS,
        "    **dict.fromkeys(outcomes.OPEN, UNKNOWN),\n",
        "",
        EXECUTED + "a_status_says_whether_it_may_have_been_done[in flight]",
        EXECUTED + "a_status_says_whether_it_may_have_been_done[nobody knows]",
    ),
    _rule(
        "what was rejected is refused in the session",
        CALLS,
        "    outcomes.REJECTED: REFUSED,\n",
        "",
        EXECUTED + "another_payload_for_the_same_order_is_refused_and_not_sent",
    ),
    _rule(
        "a call that joined another and has its result is done",
        CALLS,
        "DONE if joined else _STATUS[done.status]",
        "_STATUS[done.status]",
        EXECUTED + "two_calls_side_by_side_are_one_effect_and_the_second_joins_the_first",
    ),
    _rule(
        "a key store that fails leaves a call unknown",
        CALLS,
        'return f"{told} ({type(error).__name__}).", UNKNOWN',
        'return f"{told} ({type(error).__name__}).", FAILED',
        EXECUTED + "a_key_store_that_fails_leaves_the_call_unknown",
    ),
    _rule(
        "a tool with a service asks for executor and budget before the turn begins",
        CALLS,
        "if self.tools.with_service and (self.executor is None or self.budget is None):",
        "if self.tools.with_service and self.executor is None and self.budget is None:",
        EXECUTED + "a_tool_with_a_service_needs_the_turns_executor_and_budget[executor]",
        EXECUTED + "a_tool_with_a_service_needs_the_turns_executor_and_budget[budget]",
    ),
    _rule(
        "a plain tool ends at the budget's deadline",
        CALLS,
        "return min(tool.limit, self.budget.within(tool.name, tool=tool.name).remaining)",
        "return tool.limit",
        EXECUTED + "a_tool_without_a_service_ends_at_the_nearer_of_its_limit_and_the_budgets"
        "_deadline[9.0-60.0-8]",
    ),
    _rule(
        "a plain tool leaves time for handing its result back",
        CALLS,
        "self.budget.within(tool.name, tool=tool.name).remaining",
        "self.budget.remaining",
        EXECUTED + "a_tool_without_a_service_ends_at_the_nearer_of_its_limit_and_the_budgets"
        "_deadline[9.0-60.0-8]",
    ),
    _rule(
        "a tool whose time is over is not begun",
        CALLS,
        "        if self._limit(permitted.tool) <= 0:\n",
        "        if False:\n",
        EXECUTED + "a_tool_is_not_begun_when_its_time_is_over",
    ),
    _rule(
        "an executor is asked when the time for its tool is over",
        CALLS,
        "if self.budget is None or tool.service is not None:",
        "if self.budget is None:",
        EXECUTED + "when_the_time_for_a_tool_is_over_its_executor_still_knows_what_was_done"
        "[order-7-done-This was done before]",
        EXECUTED + "when_the_time_for_a_tool_is_over_its_executor_still_knows_what_was_done"
        "[order-8-failed-the time ran out]",
    ),
    _rule(
        "the model's requests in a turn draw on its budget",
        TURN,
        '        budget=services.budget and services.budget.within("model"),\n',
        "",
        EXECUTED + "the_turns_budget_pays_for_the_model_and_for_the_tool",
        EXECUTED + "a_turn_whose_budget_is_used_up_ends_with_its_finished_steps_kept",
    ),
)

_SDK: Final = (
    _rule(
        "the client's first request pays at the door",
        PAYING,
        "            self._reserved -= 1\n        else:",
        "            self._reserved -= 1\n        elif count:",
        SDK + "not_even_the_first_request_goes_out_on_an_empty_budget",
    ),
    _rule(
        "a retry that was allowed is not paid for twice",
        PAYING,
        "        if count and self._reserved:",
        "        if False:",
        SDK + "what_is_paid_for_is_what_the_client_does_by_its_own_rules[(503, {})]",
    ),
    _rule(
        "a retry that was allowed has its request",
        PAYING,
        "            self.budget.request()  # its place is kept while the client waits\n",
        "            pass\n",
        SDK + "a_retry_that_was_allowed_has_its_request_even_where_others_use_up_the_rest",
    ),
    _rule(
        "the client is told not to try again",
        PAYING,
        '{"x-should-retry": "false", "x-budget-exhausted": short}',
        '{"x-budget-exhausted": short}',
        SDK + "where_the_budget_says_no_the_client_ends_with_the_last_real_answer",
        CASES.removesuffix("case_") + "the_retries_of_a_client_in_a_tool_are_those_of_the_tool"
        "[limits1-4]",
    ),
    _rule(
        "what ran out stands in the answer",
        PAYING,
        ', "x-budget-exhausted": short}',
        "}",
        SDK + "where_the_budget_says_no_the_client_ends_with_the_last_real_answer",
    ),
    _rule(
        "a lost connection is not tried again past the budget",
        PAYING,
        "                raise error from lost\n",
        "                raise\n",
        SDK + "a_lost_connection_ends_in_the_error_that_the_client_itself_would_raise"
        "[ReadError-APIConnectionError]",
    ),
    _rule(
        "a timeout stays a timeout",
        PAYING,
        "last = openai.APITimeoutError if late else openai.APIConnectionError",
        "last = openai.APIConnectionError",
        SDK + "a_lost_connection_ends_in_the_error_that_the_client_itself_would_raise"
        "[ReadTimeout-APITimeoutError]",
    ),
    _rule(
        "nothing is asked for a retry that the client would not make",
        PAYING,
        "if _tried_again(answer) and (short",
        "if answer.is_error and (short",
        SDK + "what_is_paid_for_is_what_the_client_does_by_its_own_rules[(400, {})]",
    ),
    _rule(
        "nothing is asked for after the client's last attempt",
        PAYING,
        "        if count >= self.retries:\n",
        "        if count > self.retries:\n",
        SDK + "what_is_paid_for_is_what_the_client_does_by_its_own_rules[(503, {})]",
    ),
    _rule(
        "a Retry-After above two minutes ends the client by itself",
        PAYING,
        "if not answer.is_error or _asked(answer) > LONGEST_ASKED:",
        "if not answer.is_error:",
        SDK + "what_is_paid_for_is_what_the_client_does_by_its_own_rules"
        "[(429, {'retry-after': '121'})]",
    ),
    _rule(
        "the wait that is asked for is the Retry-After",
        PAYING,
        "(_asked(answer) if answer is not None else 0) or min",
        "min",
        SDK + "a_wait_that_would_pass_the_deadline_is_not_slept",
    ),
    _rule(
        "the client's backoff doubles, and so does what is asked for",
        PAYING,
        "FIRST * 2**count",
        "FIRST",
        SDK + "the_wait_that_is_asked_for_is_never_shorter_than_the_clients_own[(503, {})]",
    ),
)

_SHOWN: Final = (
    _rule(
        "a layer's loop asks the budget",
        SCENARIOS,
        '"attempts" if attempt == attempts else layer.retry(WAIT)',
        '"attempts" if attempt == attempts else ""',
        SHOWN + "one_budget_sends_what_it_allows_and_every_layer_gives_up[plain_shared]",
    ),
    _rule(
        "a service that is up can do so much and no more",
        SCENARIOS,
        "        if down or full:\n",
        "        if down:\n",
        SHOWN + "without_chance_the_clients_come_back_at_the_same_instants",
    ),
    _rule(
        "the graph's own retry asks the budget",
        GRAPHS,
        "return next(failures) < attempts and not layer.retry(WAIT)",
        "return True",
        SHOWN + "a_scenario_shows_the_figures_and_findings_of_its_claim[langgraph_shared]",
    ),
    _rule(
        "a node that runs again goes on from the checkpoint",
        GRAPHS,
        "kept = await invoked(node, None, saver)",
        "kept = await invoked(node, None, InMemorySaver())",
        SHOWN + "the_node_that_runs_again_with_a_key_is_given_the_first_runs_result",
    ),
    _rule(
        "a layer's retries are no storm of others",
        "labkit/scenarios/budget_judges.py",
        "if first >= CROWD and len(retries) > first:",
        "if len(retries) > first:",
        SHOWN + "more_retries_than_questions_are_a_load_of_their_own",
    ),
    _rule(
        "a promise is judged by the page and not by the lab",
        "labkit/scenarios/budget_judges.py",
        'elif event.actor == "page" and event.time > due:',
        "elif event.time > due:",
        SHOWN + "a_promise_is_overrun_by_whatever_the_page_gets_later",
    ),
    _rule(
        "a peak counts what comes after a failure",
        "labkit/scenarios/budget_judges.py",
        'in _requests(events) if event.get("attempt", 1) > 1]',
        "in _requests(events)]",
        SHOWN + "the_peak_counts_retries_within_any_one_second[rows1-0]",
        "scenarios/test_effect_facts.py::test_first_tries_are_no_crowd_of_retries",
    ),
)

SAFEGUARDS: Final = _ACCOUNT + _STREAMS + _ANSWERS + _TOOLS + _SDK + _SHOWN
