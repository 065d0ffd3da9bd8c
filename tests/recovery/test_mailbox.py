"""The mailbox: a message is in exactly one place, and comes out in the order it came in."""

from __future__ import annotations

from labkit.recovery.mailbox import ROOM, Inbound, Mailbox


def letters(count: int) -> list[Inbound]:
    return [Inbound("ann", str(number)) for number in range(count)]


def filled(count: int, room: int = ROOM) -> Mailbox:
    mailbox = Mailbox(room)
    for letter in letters(count):
        mailbox.offer(letter)
    return mailbox


def test_it_takes_what_it_has_room_for_and_refuses_the_rest() -> None:
    mailbox = Mailbox(room=2)
    assert [mailbox.offer(letter) for letter in letters(3)] == [True, True, False]
    assert len(mailbox) == 2
    mailbox.take()
    assert mailbox.offer(Inbound("ann", "again"))


def test_messages_come_out_in_the_order_in_which_they_came_in() -> None:
    mailbox = filled(3)
    assert [mailbox.take() for _ in range(4)] == [*letters(3), None]


def test_all_are_taken_at_once_and_it_stays_open() -> None:
    mailbox = filled(3)
    assert mailbox.take_all() == letters(3)
    assert len(mailbox) == 0
    assert mailbox.offer(Inbound("ann", "again"))


def test_it_does_not_finish_while_a_message_is_in_it() -> None:
    mailbox = filled(1)
    assert not mailbox.finish()
    assert mailbox.offer(Inbound("ann", "more"))
    mailbox.take_all()
    assert mailbox.finish()
    assert not mailbox.offer(Inbound("ann", "late"))


def test_it_finishes_anyway_where_it_must_and_keeps_what_is_in_it() -> None:
    mailbox = filled(2)
    assert mailbox.finish(anyway=True)
    assert not mailbox.offer(Inbound("ann", "late"))
    assert mailbox.close() == letters(2)


def test_closing_it_takes_out_all_that_is_left_and_nothing_gets_in_again() -> None:
    mailbox = filled(2)
    assert mailbox.close() == letters(2)
    assert mailbox.closed
    assert not mailbox.offer(Inbound("ann", "late"))
    assert mailbox.close() == []


def test_of_each_channel_the_newest_message_that_was_taken_is_remembered() -> None:
    mailbox = Mailbox()
    first, second, third = (Inbound("ann", text, text[0]) for text in ("a1", "b1", "a2"))
    for letter in (first, second, third, Inbound("ann", "left", "c")):
        mailbox.offer(letter)
    began = Inbound("ann", "a0", "a")
    assert mailbox.writers(began) == [began]
    for _ in range(3):
        mailbox.take()
    mailbox.take_all()
    assert mailbox.writers(began) == [third, second]
    asked = Inbound("ann", "d0", "d")
    assert mailbox.writers(asked) == [asked, third, second]
