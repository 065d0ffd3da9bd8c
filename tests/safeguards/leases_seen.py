"""The safeguards of what a learner sees of leases: charts, facts, exercises."""

from typing import Final

from .kinds import of_rows

_LEASES: Final = "tests/teaching/test_leases.py::"
_STATES: Final = "tests/teaching/test_states.py::"
_LENGTHS: Final = "tests/teaching/test_lease_lengths.py::"
_TRIALS: Final = "tests/teaching/test_lease_trials.py::"
_FACTS: Final = "tests/scenarios/test_lease_facts.py::"
_FLOOR: Final = "tests/teaching/test_floor.py::"
_LASTS: Final = f"{_LEASES}test_a_lease_lasts_from_its_claim_to_the_end_of_its_last_renewal"
_BACK: Final = f"{_LEASES}test_a_lease_ends_with_the_move_that_gives_the_run_back"
_AFTER: Final = f"{_LEASES}test_a_renewal_after_the_end_lengthens_nothing"
_TWICE: Final = (
    f"{_LEASES}test_two_leases_on_one_run_at_once_are_a_field_across_the_lanes_and_a_line"
)
_ONCE: Final = f"{_LEASES}test_each_moment_with_two_leases_is_told_once"
_AGAIN: Final = f"{_LEASES}test_a_worker_that_claims_its_run_again_has_one_lease_on_it"
_MANY: Final = f"{_LEASES}test_of_many_leases_the_first_are_told_and_the_words_that_have_room"
_AWAY: Final = f"{_LEASES}test_the_lane_of_a_worker_that_is_away_is_hatched_for_so_long"
_WRITES: Final = f"{_LEASES}test_a_write_is_kept_or_refused_or_into_the_run_of_another"
_OWN_MARK: Final = f"{_LEASES}test_a_run_that_is_handed_back_or_cancelled_has_a_mark_of_its_own"
_EFFECTS: Final = (
    f"{_LEASES}test_effects_and_findings_stand_in_lanes_of_their_own_with_a_line_at_each_finding"
)
_LEGEND: Final = f"{_LEASES}test_the_picture_says_each_fence_and_the_legend_each_sign_that_is_there"
_CHANGED: Final = f"{_STATES}test_a_changed_table_changes_the_picture_and_the_words"
_RULE: Final = (
    f"{_TRIALS}test_the_rule_of_the_exercise_is_what_a_renewal_does_while_every_try_fails"
)
_WRONG: Final = f"{_TRIALS}test_a_typical_wrong_answer_is_told_its_case"
_CLAIM: Final = f"{_FACTS}test_a_claim_is_measured_by_the_lease_that_lasted_at_the_blow"
_NEXT: Final = f"{_FACTS}test_the_next_write_is_the_first_from_the_blow_on_and_no_renewal"

# name, file in labkit, old, new, what goes red
_ROWS: Final = (
    (
        "a lease is drawn to the end of its last renewal",
        "teaching/lease_story.py",
        "lease.end, lease.renewals = until, (*lease.renewals, now)",
        "lease.renewals = (*lease.renewals, now)",
        _LASTS,
    ),
    (
        "a lease is drawn to where the run was given back",
        "teaching/lease_story.py",
        'lease.end, lease.how = min(lease.end, now), event["status"]',
        'lease.how = event["status"]',
        _BACK,
    ),
    (
        "a lease that was given back is over",
        "teaching/lease_story.py",
        "            del newest[run]\n",
        "",
        _AFTER,
    ),
    (
        "a lease is drawn to the end of the run at most",
        "teaching/leases.py",
        "lanes.index(lease.lane), min(lease.end, told.end) - lease.start",
        "lanes.index(lease.lane), lease.end - lease.start",
        _LASTS,
    ),
    (
        "two leases on two runs are no double claim",
        "teaching/lease_story.py",
        "combinations(self.leases, 2) if a.run == b.run]",
        "combinations(self.leases, 2)]",
        _TWICE,
    ),
    (
        "a take-over at the end of a lease is no double claim",
        "teaching/lease_story.py",
        "in both if each[1] < each[2])",
        "in both if each[1] <= each[2])",
        _TWICE,
    ),
    (
        "moments with two leases are told once",
        "teaching/lease_story.py",
        "if found and found[-1][0] == run and start <= found[-1][2]:",
        "if False:",
        _ONCE,
    ),
    (
        "moments with two leases are told to their end",
        "teaching/lease_story.py",
        "end = max(before, end)",
        "pass",
        _ONCE,
    ),
    (
        "who claims a run once more has one lease on it",
        "teaching/lease_story.py",
        "latest[lane].end = min(latest[lane].end, now)",
        "pass",
        _AGAIN,
    ),
    (
        "a lane has so many lines and says how many more there are",
        "teaching/lease_story.py",
        "if len(lines_of) > MOST:",
        "if False:",
        _MANY,
    ),
    (
        "words that have no room are left out",
        "teaching/leases.py",
        "if lease.start >= free.get(top, 0.0):",
        "if True:",
        _MANY,
    ),
    (
        "a run's text has room for so many effects",
        "teaching/views.py",
        "((effects, MOST_EFFECTS), (findings, MOST_FINDINGS))",
        "((findings, MOST_FINDINGS),)",
        "tests/teaching/test_views.py::"
        "test_a_run_is_told_in_5_to_15_lines_with_outcome_page_and_finding",
    ),
    (
        "who is frozen is so until the thaw",
        "teaching/lease_story.py",
        'over = next(later, run.time) if event.kind == "frozen" else over',
        "over = over",
        f"{_AWAY}[frozen longer]",
    ),
    (
        "a write into another's run has a shape of its own",
        "teaching/lease_story.py",
        '"zombie" if event.index in zombies else own',
        "own",
        _WRITES,
    ),
    (
        "the owner's word is no write of a worker",
        "teaching/lease_story.py",
        'if kind == "wrote" and worker in workers:',
        'if kind == "wrote":',
        f"{_LEASES}test_a_cancel_of_the_owner_ends_the_lease_and_is_no_write_of_a_worker",
    ),
    (
        "a write is counted where the store tells of it",
        "teaching/lease_story.py",
        '(event.actor == "store" or kind not in SAID_TWICE):',
        "True:",
        f"{_LEASES}test_what_a_worker_tells_of_a_write_is_not_counted_beside_the_stores_word",
    ),
    (
        "a hand back has a mark of its own",
        "teaching/lease_story.py",
        '"handed_back" if event["status"] == QUEUED else "kept"',
        '"kept"',
        _OWN_MARK,
    ),
    (
        "a cancel has a mark in the lane of who held the run",
        "teaching/lease_story.py",
        'kind, worker = "cancelled", holder.get(event["run"], "")',
        "pass",
        _OWN_MARK,
    ),
    (
        "a run that nobody held has no mark of its cancel",
        "teaching/lease_story.py",
        "if kind in MARKS and worker and (",
        "if kind in MARKS and (",
        f"{_LEASES}test_a_run_that_is_cancelled_before_anybody_has_it_is_nobodys_mark",
    ),
    (
        "the legend says what is pale",
        "teaching/leases.py",
        "*([pale] if any(each.away for each in told) else []),",
        "pale,",
        f"{_LEASES}test_the_legend_says_what_is_pale_where_a_worker_is_away",
    ),
    (
        "no mark lies under the words of a lane",
        "teaching/leases.py",
        "UNDER, WORDS = 0.13, 0.39, 0.65, 0.89",
        "UNDER, WORDS = 0.13, 0.39, 0.79, 0.89",
        f"{_LEASES}test_no_mark_lies_under_the_words_of_a_lane",
    ),
    (
        "no user is said to look on where none does",
        "teaching/views.py",
        '("store", "claimed") not in kinds or',
        "True or",
        "tests/teaching/test_stepper.py::"
        "test_where_workers_do_the_runs_of_a_store_no_user_is_said_to_look_on",
    ),
    (
        "a lease that cannot be measured is refused",
        "teaching/lease_lengths.py",
        "if not BOUNDS[0] <= length <= BOUNDS[1]:",
        "if False:",
        f"{_LENGTHS}test_a_length_that_cannot_be_measured_here_is_refused_before_anything_is_told"
        "[400]",
    ),
    (
        "a time of the floor has bounds",
        "teaching/floor.py",
        "if not (is_amount(value) and least <= value <= most):",
        "if not is_amount(value):",
        f"{_FLOOR}test_a_time_that_is_none_is_refused_with_its_bounds[lease-0]",
    ),
    (
        "the breakpoint of a lost claim stands where it is lost",
        "recovery/renewal.py",
        "        if answer is False:\n            self.lost = TAKEN  # breakpoint: claim lost\n",
        "        if answer is False:  # breakpoint: claim lost\n            self.lost = TAKEN\n",
        "tests/scenarios/test_lease_floor.py::"
        "test_the_breakpoint_of_a_lost_claim_is_reached_only_where_it_is_lost",
    ),
    (
        "a worker that stops writes never again, and that decides",
        "scenarios/lease_facts.py",
        "next(stops, events[-1]).index",
        "events[-1].index",
        f"{_FACTS}test_the_answers_of_a_row_and_the_events_that_decided_them[leases.cut_off]",
    ),
    (
        "a lane names its run where there are several",
        "teaching/lease_story.py",
        "several = len(states) > 1",
        "several = False",
        f"{_LEASES}test_a_lane_names_its_run_where_there_are_several",
    ),
    (
        "a finding is a line through the lanes",
        "teaching/leases.py",
        'if item.lane == "findings":\n            axes.axvline',
        'if item.lane == "":\n            axes.axvline',
        _EFFECTS,
    ),
    (
        "the legend names what is there",
        "teaching/leases.py",
        "            if kind in there\n",
        "",
        _LEGEND,
    ),
    (
        "what an effect is called is shown as text",
        "teaching/lease_story.py",
        "printable(words)",
        "words",
        f"{_LEASES}test_what_is_told_by_others_is_shown_as_text",
    ),
    (
        "a panel on workers draws their leases",
        "teaching/panel.py",
        "((has_lanes, lanes), (has_leases, leases))",
        "((has_lanes, lanes),)",
        "tests/teaching/test_panel.py::test_a_panel_on_workers_shows_who_held_what",
    ),
    (
        "another choice on the floor closes the run of before",
        "teaching/floor.py",
        "picture.value, opened.children = self.chart.html, ()",
        "picture.value = self.chart.html",
        f"{_FLOOR}test_each_control_has_a_label_and_plays_and_draws_the_run_again",
    ),
    (
        "the number beside a slider of the floor does the same",
        "teaching/floor.py",
        "for control in (number, slider):",
        "for control in (slider,):",
        f"{_FLOOR}test_each_control_has_a_label_and_plays_and_draws_the_run_again",
    ),
    (
        "what happens at once has no length",
        "teaching/floor.py",
        "lasts = [lasting] if happens in LASTING else []",
        "lasts = [lasting]",
        f"{_FLOOR}test_it_says_how_long_only_of_what_lasts",
    ),
    (
        "the run of a choice on the floor is played once",
        "teaching/floor.py",
        "lru_cache(maxsize=1)(_played)",
        "_played",
        f"{_FLOOR}test_a_run_is_played_once_for_each_choice",
    ),
    (
        "the floor plays with the lease that is chosen",
        "teaching/floor.py",
        "replace(known.policy, lease=lease)",
        "known.policy",
        f"{_FLOOR}test_a_sleep_that_the_lease_outlasts_costs_nothing[a long lease]",
    ),
    (
        "the states are drawn from the table that is given",
        "teaching/states.py",
        "        for name, move in moves.items()\n        for source in",
        "        for name, move in MOVES.items()\n        for source in",
        _CHANGED,
    ),
    (
        "a state is final only if no move leaves it",
        "teaching/states.py",
        "if state not in left]",
        'if state not in ("queued", "running")]',
        f"{_STATES}test_a_state_that_no_move_leaves_is_final_and_has_two_borders",
    ),
    (
        "arrows between the same two states lie apart",
        "teaching/states.py",
        "(x, y), (to_x, to_y), bend = start, end, APART * apart",
        "(x, y), (to_x, to_y), bend = start, end, 0.0",
        f"{_STATES}test_no_two_labels_meet[as it is]",
    ),
    (
        "who makes a move is told by the line too",
        "teaching/states.py",
        '{"linestyle": line, ',
        '{"linestyle": "-", ',
        f"{_STATES}test_who_makes_a_move_is_told_by_the_line_too_and_the_legend_says_how",
    ),
    (
        "a sweep says how far it is",
        "teaching/lease_lengths.py",
        'print(f" {length:g}", end="", flush=True)',
        "pass",
        f"{_LENGTHS}test_it_says_how_long_it_takes_before_and_where_it_is_after_each_length",
    ),
    (
        "the default that is marked is the manager's",
        "teaching/lease_lengths.py",
        "DEFAULT: Final = type(POLICY)().lease",
        "DEFAULT: Final = POLICY.lease",
        f"{_LENGTHS}test_the_default_is_the_managers_and_stands_among_the_lengths",
    ),
    (
        "a write after the end is wrong also where nobody has taken the run",
        "teaching/lease_trials.py",
        "lease.is_held_by(held, mine) and not lease.expired(held, now)",
        "lease.is_held_by(held, mine)",
        f"{_WRONG}[09.write-never_asks_the_time-'now': 12.0-It gives True; False is expected]",
    ),
    (
        "a write is looked at in its state",
        "teaching/lease_trials.py",
        'if row.status in MOVES["step"].sources:',
        "if row.worker:",
        f"{_WRONG}[09.write-asks_for_no_state-'status': 'completed'-It gives True]",
    ),
    (
        "the exercise stops where labkit's renewal does",
        "teaching/lease_trials.py",
        "now >= last + LAST_TRY * length",
        "now >= last + length",
        f"{_WRONG}[09.renew-stops_at_the_end-'now': 9.0-It gives 1.0; None is expected]",
    ),
    (
        "a renewal that fails is tried as often as the exercise says",
        "recovery/renewal.py",
        "RUSH: Final = 12 ",
        "RUSH: Final = 10 ",
        _RULE,
    ),
    (
        "a renewal is no write of the first worker",
        "scenarios/lease_facts.py",
        'event.get("move", "renew") != "renew"',
        'event.kind == "refused"',
        f"{_NEXT}[after1-answer1]",
    ),
    (
        "a claim is at once while the renewed lease lasts",
        "scenarios/lease_facts.py",
        'if e.get("until")][-1]',
        'if e.get("until")][0]',
        f"{_CLAIM}[after4-answer4]",
    ),
    (
        "the holder's own claim once more is not another's",
        "scenarios/lease_facts.py",
        'if event["by"] != first["by"]), None)',
        "), None)",
        f"{_CLAIM}[after3-answer3]",
    ),
    (
        "a run that is handed back is a blow",
        "scenarios/lease_facts.py",
        "(next(back, None), next(blows, None))",
        "(next(blows, None),)",
        f"{_NEXT}[after5-answer5]",
    ),
    (
        "a run is finished by who wrote that it is completed",
        "scenarios/lease_facts.py",
        'e.get("status") == COMPLETED)',
        'e.get("status"))',
        f"{_FACTS}test_who_finishes_is_read_from_the_write_of_the_end_and_its_fence",
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS, under="labkit/")
