#!/bin/sh
# Starts a Kafka of one node (KRaft) as a dependency of a trial: new and empty, in its own /tmp, on
# 127.0.0.1:9092. KAFKA_LIB names the directory of its jars.
set -eu
mkdir -p /tmp/kafka
cat >/tmp/kafka/server.properties <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs=/tmp/kafka/log
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
END
java -cp "$KAFKA_LIB/*" kafka.tools.StorageTool format --cluster-id loadline-loadline-0000 --config /tmp/kafka/server.properties
exec java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$KAFKA_LIB/*" kafka.Kafka /tmp/kafka/server.properties
