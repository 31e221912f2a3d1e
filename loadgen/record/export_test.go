package record

import "os"

// SetLedgerFile lets a test stand another file in for the ledger's.
func SetLedgerFile(l *Ledger, f *os.File) {
	_ = l.file.Close()
	l.file = f
}
