// From rows to what is shown. Each step makes new objects on purpose: garbage is part of this study's work.

/** Ages are those of this day, so that answers do not change from day to day. */
const AS_OF = new Date("2025-07-01T00:00:00Z");

function ageOf(dateOfBirth) {
  const years = AS_OF.getUTCFullYear() - dateOfBirth.getUTCFullYear();
  const months = AS_OF.getUTCMonth() - dateOfBirth.getUTCMonth();
  const isBefore = months < 0 || (months === 0 && AS_OF.getUTCDate() < dateOfBirth.getUTCDate());
  return isBefore ? years - 1 : years;
}

/** People with id, full name and age. */
export function peopleOf(rows) {
  return rows
    .map((row) => ({ ...row, fullName: `${row.firstName} ${row.lastName}` }))
    .map(({ id, fullName, dateOfBirth }) => ({ id, fullName, age: ageOf(dateOfBirth) }));
}

/** The mean age with two digits. */
export function averageAge(people) {
  return (people.map(({ age }) => age).reduce((sum, age) => sum + age, 0) / people.length).toFixed(2);
}
