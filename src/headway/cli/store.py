"""``headway store``: look into a store, forget keys, prepare a database, measure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli import exit_codes
from headway.cli.failing import outages_told_once
from headway.cli.safe import safe
from headway.errors import AttributeMissing, ConfigError, LimitError, StoreUnusable, UnknownName
from headway.stores.shown import shown

if TYPE_CHECKING:
    from headway.limiter.explain import Explanation
    from headway.limiter.limiter import Limiter
    from headway.policy.policy import Policy
    from headway.stores.base import Store

__all__ = ["add_parser"]

_CODES = "Exit codes: 0 done, 69 the store could not be asked, 64 usage, 78 the URL or the policy file."
_PATIENCE_S = 5.0
_URL = "where the state is, such as redis://host:6379/0, postgresql://user@host/database or sqlite:///limits.db"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway store`` and its own commands."""
    parser = commands.add_parser(
        "store",
        help="look into a store, reset keys, prepare a database, measure",
        description="Look into a store and take care of it: every kind, by its URL. A server has 5 s for each answer, where "
        "the URL names no deadline. " + _CODES,
    )
    parser.set_defaults(run=lambda _: _help(parser))
    ours = parser.add_subparsers(metavar="COMMAND", title="commands")
    _add_inspect(ours)
    _add_reset(ours)
    _add_init(ours)
    _add_bench(ours)


def _add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _added(
        commands,
        "inspect",
        _inspect,
        "say in words how a key stands",
        "Say whether the store answers and, with a policy file and a request's attributes, how each limit "
        "stands for it: what is used, what would be admitted, and when. Nothing is charged or written.",
    )
    parser.add_argument("--cost", type=int, default=1, metavar="N", help="units to ask about (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_reset(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _added(
        commands,
        "reset",
        _reset,
        "forget the state of a key",
        "Forget what the limits hold against a key, as if it had never been used, and say what was "
        "forgotten. Limits whose attributes are all given are reset; one without attributes only by its name.",
        policy_required=True,
    )
    parser.add_argument("--limit", action="append", default=[], metavar="NAME", help="only this limit; may be repeated")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_init(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "init",
        help="put the schema in place (PostgreSQL)",
        description="Put the schema of a PostgreSQL store in place: a table and functions in a schema of their own. "
        "Safe to repeat and beside others; other kinds of stores need nothing. " + _CODES,
    )
    parser.add_argument("url", metavar="URL", help="postgresql://user@host/database; ?schema=NAME for another schema")
    parser.add_argument(
        "--unlogged", action="store_true", help="a table without write-ahead log: quicker, and empty after a crash"
    )
    parser.add_argument(
        "--role", action="append", default=[], metavar="ROLE", help="let this role call the functions; may be repeated"
    )
    parser.add_argument("--print", action="store_true", help="print the SQL instead, and connect to nothing")
    parser.set_defaults(run=_init)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure decisions a second",
        description="Measure decisions a second and their times, one after the other: one and four limits, admitted and "
        "refused; on keys of its own, which are gone afterwards. " + _CODES,
    )
    parser.add_argument("url", metavar="URL", help=_URL)
    parser.add_argument(
        "--seconds", type=float, default=4.0, metavar="S", help="how long in all, 0.1 to 600 (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; times are in microseconds")
    parser.set_defaults(run=_bench)


def _added(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    what: str,
    description: str,
    *,
    policy_required: bool = False,
) -> argparse.ArgumentParser:
    """A command about one request's keys in one store."""
    parser = commands.add_parser(name, help=what, description=f"{description} {_CODES}")
    parser.add_argument("url", metavar="URL", help=_URL)
    parser.add_argument(
        "attributes",
        nargs="*",
        default=[],
        metavar="attr=value",
        help="what is known of the request, such as phone=+447700900123",
    )
    parser.add_argument(
        "--policy", type=Path, required=policy_required, metavar="FILE", help="the policy file that has the limits"
    )
    parser.add_argument("--name", metavar="POLICY", help="only this policy of the file (default: all that fit)")
    parser.set_defaults(run=run, takes_rest="attributes")
    return parser


def _inspect(args: argparse.Namespace) -> int:
    attributes = _attributes(args)
    if args.cost < 0:
        raise LimitError(f"--cost is {args.cost}; expected a whole number from 0")
    if args.policy is None:
        if attributes or args.name:
            raise LimitError("attributes and --name say nothing without the limits; expected --policy FILE too")
        with _opened(args.url, making=False) as store:
            from headway.cli.store_bench import look

            now = look(store)
            print(json.dumps({"store": args.said, "now_ns": now}) if args.json else f"{args.said}: answers")
        return exit_codes.OK
    policies = _policies(args)
    meant = [policy for policy in policies if _lacks(policy, attributes) is None]
    if not meant:
        raise next(error for policy in policies if (error := _lacks(policy, attributes)) is not None)
    found: dict[str, Explanation] = {}
    with _limiters(args, meant) as limiters:
        for name, limiter in limiters.items():
            found[name] = limiter.explain(attributes, cost=args.cost)
    if args.json:
        print(json.dumps({name: _document(explanation) for name, explanation in found.items()}))
    else:
        print(safe("\n".join(f"{name}: {explanation}" for name, explanation in found.items())))
    unknown = [one.decision.degraded for one in found.values() if one.decision.degraded]
    if unknown:
        print(f"headway store inspect: {unknown[0]}", file=sys.stderr)
    return exit_codes.STORE if unknown else exit_codes.OK


def _reset(args: argparse.Namespace) -> int:
    attributes = _attributes(args)
    policies = _policies(args)
    known = tuple(dict.fromkeys(limit.name for policy in policies for limit in policy.plain_limits))
    for name in args.limit:
        if name not in known:
            raise UnknownName("limit", name, known)
    planned = {policy.name: limits for policy in policies if (limits := _to_reset(policy, attributes, args.limit))}
    secret = {name for policy in policies for limit in policy.plain_limits for name in limit.secret}
    given = safe(
        ", ".join(f"{name}={'(secret)' if name in secret else value}" for name, value in attributes.items())
        or "everyone"
    )
    if not planned:
        there = [limit for policy in policies for limit in policy.plain_limits]
        raise LimitError(
            f"no limit is reset by {given if attributes else 'nothing'}; the limits are "
            + "; ".join(f"{limit.name} by {', '.join(limit.by) or 'nothing (--limit)'}" for limit in there)
        )
    with _limiters(args, [policy for policy in policies if policy.name in planned]) as limiters:
        for name, touched in planned.items():
            print(f"{name}: {', '.join(touched)} for {given}")
        if not args.yes and not _agreed(sum(map(len, planned.values())) > 1):
            print("nothing was reset")
            return exit_codes.OK
        for name, touched in planned.items():
            limiters[name].reset(*touched, attributes)
    print("reset")
    return exit_codes.OK


def _init(args: argparse.Namespace) -> int:
    if not args.url.startswith(("postgresql:", "postgres:")):
        from headway.service.opening import check_store_url

        check_store_url(args.url)
        print(f"{shown(args.url)}: nothing has to be put in place")
        return exit_codes.OK
    from headway.stores.url import open_store

    store: Any = open_store(args.url)  # a PostgresStore
    with closing(store):
        if args.print:
            print(store.init_sql(unlogged=args.unlogged or None, roles=args.role))
            return exit_codes.OK
        for line in store.init(unlogged=args.unlogged or None, roles=args.role):
            print(f"{shown(args.url)}: {line}")
    return exit_codes.OK


def _bench(args: argparse.Namespace) -> int:
    from headway.cli.store_bench import measure, remembers, table

    if not 0.1 <= args.seconds <= 600:
        raise LimitError(f"--seconds is {args.seconds:g}; expected 0.1 to 600")
    with _opened(args.url, making=True) as store:
        rows, remembered, said = measure(store, args.seconds), remembers(store), shown(args.url)
    print(json.dumps({"store": said, "rows": rows}) if args.json else table(said, rows, remembered=remembered))
    return exit_codes.OK


def _attributes(args: argparse.Namespace) -> dict[str, str]:
    """The attributes that were given; also says the URL without its password, for messages."""
    args.said = shown(args.url)
    found: dict[str, str] = {}
    for given in args.attributes:
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise LimitError(f"{given!r} is no attribute; expected NAME=VALUE, such as phone=+447700900123")
        if name in found:
            raise LimitError(f"the attribute {name!r} is given twice; expected one value")
        found[name] = value
    return found


def _policies(args: argparse.Namespace) -> list[Policy]:
    """The policies of the file, or the one that is named.

    Raises:
        ConfigError: the file has problems, which are said.
    """
    from headway.cli.policies import report
    from headway.service.opening import read_policies

    file = report(read_policies(args.policy))
    if file is None:
        raise ConfigError(f"{args.policy} has problems")
    return list(file.policies.values()) if args.name is None else [file.policy(args.name)]


@contextmanager
def _limiters(args: argparse.Namespace, policies: Sequence[Policy]) -> Iterator[dict[str, Limiter]]:
    """A limiter for each policy, by its name, on the store that is named."""
    from headway.limiter.limiter import Limiter
    from headway.service.opening import secret_key

    with _opened(args.url, making=False) as store:
        key = secret_key(store, [limit for policy in policies for limit in policy.plain_limits])
        yield {
            policy.name: Limiter(
                *policy.limits, store=store, namespace=policy.namespace, secret_key=key, exempt=policy.exempt
            )
            for policy in policies
        }


def _lacks(policy: Policy, attributes: Mapping[str, str]) -> AttributeMissing | None:
    """The first limit that is keyed by something that was not given."""
    for limit in policy.plain_limits:
        for name in limit.by:
            if name not in attributes:
                return AttributeMissing(name, limit.name, tuple(attributes))
    return None


def _to_reset(policy: Policy, attributes: Mapping[str, str], names: list[str]) -> list[str]:
    """The limits that a reset touches: those named, else those with attributes; where all of these are given."""
    from headway.policy.choice import limits_of

    limits = [limits_of(part)[0] for part in policy.limits]
    wanted = [limit for limit in limits if (limit.name in names if names else limit.by)]
    return [limit.name for limit in wanted if all(name in attributes for name in limit.by)]


def _agreed(several: bool) -> bool:
    if not sys.stdin.isatty():
        raise LimitError("nobody is there to be asked; expected --yes to reset without asking")
    return input(f"Forget {'these' if several else 'this'}? [y/N] ").strip().lower() in ("y", "yes")


@contextmanager
def _opened(url: str, *, making: bool) -> Iterator[Store]:
    """The store of a URL.

    Args:
        url: of any kind.
        making: what is missing may be made, and a SQLite file that was not there is gone afterwards; else it is an error.
    """
    from headway.service.opening import check_store_url
    from headway.stores.url import open_store

    check_store_url(url)
    file = _file(url)
    made = file is not None and not file.exists()
    if made and not making:
        raise StoreUnusable(f"{shown(url)}: there is no such file")
    if url.startswith("memory:"):
        print("headway store: a memory store lives in its process; this one is new and empty", file=sys.stderr)
    if url.startswith(("postgresql:", "postgres:")) and not making and "install=" not in url:
        url += f"{'&' if '?' in url else '?'}install=false"
    store = open_store(url, deadline=_deadline(url))
    try:
        with closing(store), outages_told_once():
            yield store
    finally:
        if made and file is not None:
            for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
                file.with_name(name).unlink(missing_ok=True)


def _deadline(url: str) -> float | None:
    """Seconds for each answer of a server: a person waits longer than a request does; None: what the URL says."""
    from headway.stores.url import is_networked

    return _PATIENCE_S if is_networked(url) and "deadline=" not in url else None


def _file(url: str) -> Path | None:
    """The file of a SQLite URL."""
    from urllib.parse import unquote, urlsplit

    if not url.startswith("sqlite:"):
        return None
    return Path.cwd() / unquote(urlsplit(url).path)[1:]


def _document(explanation: Explanation) -> dict[str, object]:
    from headway.service.answer import decision_document

    return {
        **decision_document(explanation.decision),
        "degraded": explanation.decision.degraded,
        "exempt": explanation.exempt,
        "limits": [
            {
                "limit": one.limit,
                "quota": one.quota,
                "algorithm": one.algorithm,
                "key": one.key,
                "state": one.state,
                "answer": one.answer,
                "ready_at": one.ready_at and one.ready_at.isoformat(),
                "shadow": one.shadow,
            }
            for one in explanation.limits
        ],
        "others": dict(explanation.others),
    }


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help(sys.stderr)
    return exit_codes.USAGE
