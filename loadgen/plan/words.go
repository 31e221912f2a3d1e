package plan

import "strings"

// wordList is what synthetic prompts are made of. Its order is part of what a seed means: append,
// never reorder.
func wordList() []string {
	return strings.Fields(`
		able above across again age air all also animal answer apple area arm army art ask away baby back bad
		ball bank base bear beat bed bell best bird black block blood blue board boat body bone book born both
		bottom box boy branch bread break bridge bright bring brother brown build burn bus busy buy call camp car
		card care case cat catch cause center chair chance change chart check child choose circle city class clean
		clear climb clock close cloth cloud coast coat cold color come common cook cool copper corn corner cost
		cotton count country course cover cow create crop cross crowd cry current cut dance danger dark day dead deal
		dear death deep desert desk doctor dog dollar door down draw dream dress drink drive drop dry duck dust ear
		early earth east easy eat edge egg eight end energy engine enter equal even evening every exact eye face fact
		fair fall family famous far farm fast father fear feed feel feet field fight figure fill final find fine
		finger finish fire first fish five flat floor flow flower fly fold follow food foot force forest form forward
		four free fresh friend front fruit full game garden gas gate gave gentle gift girl give glad glass gold good
		grand grass gray great green ground group grow guess guide gun hair half hand happy hard hat head hear heart
		heat heavy help high hill history hold hole home hope horse hot hour house huge human hundred hunt hurry ice`)
}
