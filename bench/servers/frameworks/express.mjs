// One small JSON answer by Express 5.
import express from 'express';

const app = express();
app.get('/', (_request, response) => response.json({ message: 'hello', items: [1, 2, 3] }));
app.listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1');
