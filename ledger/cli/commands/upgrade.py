"""`lakeledger upgrade`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place, Writing
from ledger.cli.screen import Screen
from ledger.plan import UpgradePlan


def upgrade(
    *,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Only say what older clients will no longer do."
        ),
    ] = False,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Let a ledger take commits of the newest format; nothing that stands there is rewritten.

    Older clients are refused from then on and told to upgrade; there is no way back. Until then
    they and newer ones work side by side.

    Example:
        lakeledger upgrade --dry-run
    """
    lake = place.open()
    plan = lake.plan_upgrade()
    document: dict[str, object] = {
        "url": lake.url,
        "dryRun": dry_run,
        "fromFormat": plan.from_format,
        "toFormat": plan.to_format,
        "olderClients": list(plan.older_clients),
        "gains": list(plan.gains),
    }
    # Who gives a commit id may have upgraded it before, and asks what came of it.
    if not dry_run and (plan.is_needed or writing.commit_id):
        document["version"] = lake.upgrade(**writing.options()).version
    place.screen.result(document, lambda to: _print(to, lake.url, plan, dry_run=dry_run))


def _print(screen: Screen, url: str, plan: UpgradePlan, *, dry_run: bool) -> None:
    if not plan.is_needed:
        screen.line(f"{url} takes format {plan.to_format} already; there is nothing to do")
        return
    done = "would go" if dry_run else "went"
    screen.line(f"{url} {done} from format {plan.from_format} to {plan.to_format}")
    screen.line("older clients will no longer:")
    for each in plan.older_clients:
        screen.line(f"  {each}")
    screen.line("from then on:")
    for each in plan.gains:
        screen.line(f"  {each}")
