"""The safeguards of the key stores: one row a key, compared writes, the database's own clock."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

SQL: Final = "labkit/stores/sql_keys.py"
MEMORY: Final = "labkit/stores/memory.py"
OPENING: Final = "labkit/stores/opening.py"
ERRORS: Final = "labkit/stores/errors.py"

_KEYS: Final = "tests/stores/test_keys.py::test_"
_OPENED: Final = "tests/stores/test_opening.py::test_"
_FORGET: Final = f"{_KEYS}only_final_records_that_have_expired_are_forgotten"
_WAITING: Final = (
    f"{_KEYS}those_that_wait_for_a_person_are_listed_for_their_tenant_the_oldest_first"
)
_WAIT: Final = f"{_KEYS}a_writer_waits_for_its_turn_while_the_loop_goes_on"
_LOCKED: Final = f"{_KEYS}a_database_that_stays_locked_is_told_by_name_and_nothing_is_written"
_CLOCK: Final = f"{_KEYS}the_time_is_the_databases_and_never_the_workers[sqlite]"
_TWO: Final = f"{_KEYS}a_store_that_looks_and_then_writes_lets_two_have_the_effect"
_OTHER: Final = f"{_KEYS}the_same_key_of_another_tenant_is_another_key"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a key has one row",
        SQL,
        'sa.Column("tenant", AsJSON, primary_key=True),\n'
        '    sa.Column("key", AsJSON, primary_key=True),',
        'sa.Column("tenant", AsJSON, nullable=False),\n'
        '    sa.Column("key", AsJSON, nullable=False),',
        (
            f"{_KEYS}a_key_is_inserted_once_whatever_its_second_owner_wants[sqlite]",
            f"{_KEYS}of_many_who_write_at_once_one_wins[sqlite]",
            f"{_TWO}[sqlite-a new key-as it is]",
        ),
    ),
    (
        "the tenant is part of a stored key",
        SQL,
        'sa.Column("tenant", AsJSON, primary_key=True)',
        'sa.Column("tenant", AsJSON, nullable=False)',
        (f"{_OTHER}[sqlite]",),
    ),
    (
        "a stored key is looked for with its tenant",
        SQL,
        "return (KEYS.c.tenant == tenant) & (KEYS.c.key == key)",
        "return KEYS.c.key == key",
        (f"{_OTHER}[sqlite]",),
    ),
    (
        "a write names the version that it replaces",
        SQL,
        "(KEYS.c.version == old.version) & (KEYS.c.since == old.since)",
        "KEYS.c.since == old.since",
        (
            f"{_KEYS}who_writes_over_an_old_version_is_refused[sqlite]",
            f"{_KEYS}of_many_who_write_at_once_one_wins[sqlite]",
            f"{_KEYS}a_claim_that_was_taken_over_meanwhile_keeps_the_newer_ones_result[sqlite]",
            f"{_TWO}[sqlite-a dead executor's-as it is]",
        ),
    ),
    (
        "a record that was made anew is another one",
        SQL,
        "(KEYS.c.version == old.version) & (KEYS.c.since == old.since)",
        "KEYS.c.version == old.version",
        (f"{_KEYS}who_has_seen_a_record_that_was_forgotten_and_made_anew_is_refused[sqlite]",),
    ),
    (
        "what is compared is not put in where nothing is",
        SQL,
        "if old is None:",
        "if old is None or new.version > 0:",
        (
            f"{_KEYS}what_is_not_kept_any_more_is_not_written_over[sqlite]",
            f"{_KEYS}who_writes_over_an_old_version_is_refused[sqlite]",
        ),
    ),
    (
        "a key that is there is no error, which a log would quote it in",
        SQL,
        ".values(_row(new)).on_conflict_do_nothing()",
        ".values(_row(new))",
        (f"{_KEYS}a_key_is_inserted_once_whatever_its_second_owner_wants[sqlite]",),
    ),
    (
        "an insert says whether it was done, on PostgreSQL too",
        SQL,
        '{"preserve_rowcount": True}',
        '{"preserve_rowcount": False}',
        (f"{_KEYS}a_key_is_inserted_once_whatever_its_second_owner_wants[postgresql]",),
    ),
    (
        "the time is the database's",
        SQL,
        "return Seen(_record(row) if row[0] is not None else None, now)",
        "return Seen(_record(row) if row[0] is not None else None, __import__('time').time())",
        (_CLOCK,),
    ),
    (
        "what has expired is told by the database's time",
        SQL,
        "final & (KEYS.c.expires <= self._now)",
        "final & (KEYS.c.expires <= __import__('time').time())",
        (_CLOCK,),
    ),
    (
        "only what has expired is forgotten",
        SQL,
        "final & (KEYS.c.expires <= self._now)",
        "final",
        (f"{_FORGET}[sqlite]",),
    ),
    (
        "what is open is never forgotten",
        SQL,
        "final = KEYS.c.state.in_([SUCCEEDED, FAILED]) & ~KEYS.c.handed_over",
        "final = ~KEYS.c.handed_over",
        (f"{_FORGET}[sqlite]",),
    ),
    (
        "what waits for a person is never forgotten",
        SQL,
        "final = KEYS.c.state.in_([SUCCEEDED, FAILED]) & ~KEYS.c.handed_over",
        "final = KEYS.c.state.in_([SUCCEEDED, FAILED])",
        (f"{_FORGET}[sqlite]",),
    ),
    (
        "a person sees the tenant's own",
        SQL,
        "mine = (KEYS.c.tenant == tenant) & KEYS.c.handed_over",
        "mine = KEYS.c.handed_over",
        (f"{_WAITING}[sqlite]",),
    ),
    (
        "a person sees what was handed over and nothing else",
        SQL,
        "mine = (KEYS.c.tenant == tenant) & KEYS.c.handed_over",
        "mine = KEYS.c.tenant == tenant",
        (f"{_WAITING}[sqlite]",),
    ),
    (
        "a person sees the oldest first",
        SQL,
        ".order_by(KEYS.c.until)",
        ".order_by(KEYS.c.key)",
        (f"{_WAITING}[sqlite]",),
    ),
    (
        "text is kept that a database refuses",
        "labkit/stores/tables.py",
        "json.dumps(value, allow_nan=False)",
        "json.dumps(value, ensure_ascii=False)",
        (
            f"{_KEYS}a_record_comes_back_as_it_was_written_with_text_of_any_kind"
            "[half a pair-sqlite]",
            f"{_KEYS}keys_and_tenants_of_any_text_are_told_apart[half a pair-sqlite]",
        ),
    ),
    (
        "a key store keeps the loop free",
        SQL,
        "return await asyncio.to_thread(ask)",
        "return ask()",
        (_WAIT,),
    ),
    (
        "a writer to SQLite waits for its turn",
        OPENING,
        '{"timeout": BUSY}',
        '{"timeout": 0}',
        (_WAIT,),
    ),
    (
        "a database's own errors get a name",
        SQL,
        "except SQLAlchemyError as error:",
        "except ZeroDivisionError as error:",
        (
            _LOCKED,
            f"{_KEYS}a_full_disk_is_told_by_name_and_what_was_kept_is_whole",
            f"{_KEYS}a_table_that_is_gone_is_told_by_name[sqlite]",
        ),
    ),
    (
        "no error of a store quotes a key",
        ERRORS,
        'return str(getattr(error, "orig", None) or error).partition("\\n")[0]',
        "return str(error)",
        (_LOCKED,),
    ),
    (
        "a stopped program holds no lock",
        OPENING,
        'SQLKeyStore, begin="",',
        'SQLKeyStore, begin="BEGIN",',
        (f"{_KEYS}a_program_that_is_stopped_after_a_write_holds_no_lock[sqlite]",),
    ),
    (
        "in memory too a write is compared",
        MEMORY,
        "if self.kept.get((new.tenant, new.key)) != old:",
        "if False:",
        (
            f"{_KEYS}a_key_is_inserted_once_whatever_its_second_owner_wants[memory]",
            f"{_KEYS}who_writes_over_an_old_version_is_refused[memory]",
            "tests/recovery/test_execution.py::test_a_hundred_calls_at_once_have_one_effect",
        ),
    ),
    (
        "in memory too what is open is never forgotten",
        MEMORY,
        "return record.state in (SUCCEEDED, FAILED) and not record.handed_over",
        "return not record.handed_over",
        (f"{_FORGET}[memory]",),
    ),
    (
        "in memory too only what has expired is forgotten",
        MEMORY,
        "if _may_go(kept) and kept.expires <= now]",
        "if _may_go(kept)]",
        (f"{_FORGET}[memory]",),
    ),
    (
        "in memory too the oldest is seen first",
        MEMORY,
        "return sorted((record for record in mine if record.handed_over), key=_handed_over_at)",
        "return [record for record in mine if record.handed_over]",
        (f"{_WAITING}[memory]",),
    ),
    (
        "in memory a record is forgotten from the second of its end",
        MEMORY,
        "kept.expires <= now]",
        "kept.expires < now]",
        (f"{_KEYS}a_record_is_forgotten_from_the_very_second_of_its_end[100.0-1-memory]",),
    ),
    (
        "in a database a record is forgotten from the second of its end",
        SQL,
        "(KEYS.c.expires <= self._now)",
        "(KEYS.c.expires < self._now)",
        (f"{_KEYS}a_record_is_forgotten_from_the_very_second_of_its_end[100.0-1-sqlite]",),
    ),
    (
        "two may make the table of keys at once",
        "labkit/stores/tables.py",
        "if not sa.inspect(engine).has_table(table.name):",
        "if True:",
        (f"{_KEYS}a_table_that_another_process_makes_at_the_same_moment_is_taken_as_it_is",),
    ),
    # --- opening, and what is told of errors
    (
        "a database in memory is refused, which each thread would have for itself",
        OPENING,
        'if url.database in (None, "", ":memory:"):',
        "if False:",
        (
            f"{_OPENED}a_url_that_cannot_be_opened_is_refused_with_what_is_possible"
            "[sqlite://-no file-open_key_store]",
        ),
    ),
    (
        "a connection that has ended is made anew",
        OPENING,
        "pool_pre_ping=True",
        "pool_pre_ping=False",
        (f"{_OPENED}a_connection_that_the_server_has_ended_meanwhile_is_made_anew",),
    ),
    (
        "a writer to SQLite waits as long as is said",
        OPENING,
        'connect_args={"timeout": BUSY}',
        "connect_args={}",
        tuple(
            f"{_OPENED}each_connection_to_sqlite_waits_for_its_turn_as_long_as_is_said[{kind}]"
            for kind in ("open_stream_store", "open_key_store")
        ),
    ),
    (
        "a file that cannot change its journal now is opened all the same",
        OPENING,
        "with suppress(sqlite3.OperationalError):",
        "with suppress():",
        tuple(
            f"{_OPENED}a_file_whose_readers_keep_it_from_its_other_journal_is_opened"
            f"_all_the_same[{kind}]"
            for kind in ("open_stream_store", "open_key_store")
        ),
    ),
    (
        "of a database's error only the first line is told",
        ERRORS,
        '.partition("\\n")[0]',
        "",
        (
            "tests/stores/test_errors.py::"
            "test_only_the_first_line_of_what_a_database_said_is_told_since_the_rest_quotes_keys",
        ),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
