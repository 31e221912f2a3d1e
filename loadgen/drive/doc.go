// Package drive sends the requests of one step: it decides when each is sent, to which window it
// belongs and when the step is over. One file per load shape.
//
// It builds no request, decodes no answer and keeps no numbers: it is handed a Sender and a
// Recorder.
package drive
