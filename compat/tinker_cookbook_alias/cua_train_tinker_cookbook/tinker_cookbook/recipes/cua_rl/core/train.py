"""As `tinker_cookbook.recipes.cua_rl.train`."""

from tinker_cookbook.recipes.cua_rl.train import CLIConfig, cli_main

__all__ = ["CLIConfig", "cli_main"]

if __name__ == "__main__":
    import sys

    from producer.cli import main

    sys.argv[:1] = ["cua-train", "run"]
    main()
