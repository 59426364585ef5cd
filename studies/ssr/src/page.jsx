// The page, as React components.

function Row({ person }) {
  return (
    <tr>
      <td>{person.id}</td>
      <td>{person.fullName}</td>
      <td>{person.age}</td>
    </tr>
  );
}

export function Page({ people, average }) {
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <title>Users</title>
      </head>
      <body>
        <h1>Users</h1>
        <p>Average age: {average}</p>
        <table>
          <thead>
            <tr>
              <th>Id</th>
              <th>Name</th>
              <th>Age</th>
            </tr>
          </thead>
          <tbody>
            {people.map((person) => (
              <Row key={person.id} person={person} />
            ))}
          </tbody>
        </table>
      </body>
    </html>
  );
}
