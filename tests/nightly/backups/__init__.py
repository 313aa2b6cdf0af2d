"""What tests/nightly/backup.py needs: stores that it can wipe, an installation on them, a ledger, and a search in the backups."""
