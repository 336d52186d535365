"""What a plant of many lines costs: counted with the planner and the sync, at a smaller scale."""
