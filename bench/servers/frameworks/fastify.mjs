// The same answer by Fastify 5.
import Fastify from 'fastify';

const app = Fastify();
app.get('/', async () => ({ message: 'hello', items: [1, 2, 3] }));
app.listen({ port: Number(process.env.PORT), host: process.env.HOST ?? '127.0.0.1' });
