// A peer for the benchmark: the turn of an agent on Temporal's TypeScript SDK alone. It runs until SIGTERM.
//
// Environment: TEMPORAL_ADDRESS (host:port), TASK_QUEUE, and MODEL_URL (the base URL of the model; it ends with /v1).
// It follows Temporal's samples for TypeScript (hello-world), and for the options of the worker "Worker performance
// options" on docs.temporal.io. The worker stops at SIGTERM by itself.

const { DefaultLogger, NativeConnection, Runtime, Worker } = require('@temporalio/worker');
const activities = require('./activities');

async function main() {
  Runtime.install({ logger: new DefaultLogger('WARN') });
  const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS });
  try {
    const worker = await Worker.create({
      connection,
      taskQueue: process.env.TASK_QUEUE,
      workflowsPath: require.resolve('./workflows'),
      activities,
      maxConcurrentWorkflowTaskExecutions: 100,
      maxConcurrentActivityTaskExecutions: 100,
      // The documentation recommends that pollers scale with the load.
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      activityTaskPollerBehavior: { type: 'autoscaling' },
    });
    const running = worker.run();
    console.log('ready');
    await running;
  } finally {
    await connection.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
