module deadheat.example/hello

go 1.21
