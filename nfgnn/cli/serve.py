"""``nfgnn serve``: predict the classes of new nodes over HTTP."""

from contextlib import suppress
from typing import Annotated

import typer

from nfgnn.cli import options
from nfgnn.errors import UserError

app = typer.Typer()


@app.command(epilog="Example:  nfgnn serve runs/mine --extends my-store --port 8000")
def serve(
    run: options.RunFolder,
    extends: Annotated[
        str,
        typer.Option(
            metavar="STORE",
            help="Store to add new nodes to, written by `nfgnn precompute --serve`: folder or URL.",
            callback=options.validate_url,
            rich_help_panel=options.DATA,
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. The server has no authentication.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port to listen on; 0 selects a free port.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = 8000,
    seed: options.RunSeed = None,
    import_: options.Import = None,
    device: options.Device = "auto",
    json_: options.Json = False,
) -> None:
    """Serve predictions for new nodes over HTTP.

    POST /predict takes {"nodes": [{"features": […], "neighbours": […]}]}.
    """
    from nfgnn.cli._print import print_json
    from nfgnn.serving import PredictionServer, StorePredictor

    predictor = StorePredictor.open(run, extends, seed, device)
    try:
        server = PredictionServer(predictor, host, port)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host} port {port} ({error.strerror}): choose another --port or "
            "--host"
        ) from None
    if json_:
        print_json({"run": str(run), "store": extends, "url": server.url})
    _log(f"serving {run} on {server.url} (press Ctrl-C to stop)")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            _log("stopped")


def _log(text: str) -> None:
    """Print a line, unless the disk of the log is full, which must not stop the server."""
    from nfgnn.cli._print import message

    with suppress(OSError):
        message(text)
