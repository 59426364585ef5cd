module deadheat.example/hello

// From 1.25 on, Go takes as many cores as a quota allows.
go 1.25
